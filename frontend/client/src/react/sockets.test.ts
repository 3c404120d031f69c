import { describe, expect, test } from "vitest";
import type { Response } from "../../testing/chunks.ts";
import { ANSWER, gate, output, step, text, turn } from "../../testing/chunks.ts";
import { FakeServer, refuses, storedAs, streams } from "../../testing/fake-server.ts";
import { FakeSockets, type Frame } from "../../testing/fake-sockets.ts";
import { MAJOR, Page } from "../../testing/hook.ts";
import type { TransportKind } from "./options.ts";

const KINDS: readonly TransportKind[] = MAJOR === 7 ? ["websocket", "bidi"] : ["bidi"];
const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] };

/** Sockets on which each `send` gets the next response, or is refused if it is a frame. */
function answering(...responses: (Response | Partial<Frame>)[]): FakeSockets {
  const sockets = new FakeSockets();
  sockets.heard = (socket, { type, requestId }) => {
    if (type === "resume") socket.say({ type: "no-active", requestId });
    if (type !== "send") return;
    const response = responses.shift() ?? [];
    if (Array.isArray(response)) {
      socket.chunks(requestId, response);
      socket.say({ type: "end", requestId });
    } else socket.say({ type: "error", ...response, requestId });
  };
  return sockets;
}

function sends(sockets: FakeSockets): Frame[] {
  return sockets.frames.filter(({ type }) => type === "send");
}

describe.each(KINDS)("over %s", (kind) => {
  test("answers and what goes with them are one frame", async () => {
    const sockets = answering(turn(step(gate("c1"), gate("c2"))), turn(output("c1"), ANSWER));
    const errors: Error[] = [];
    const page = new Page(new FakeServer(), {
      kind,
      webSocket: sockets.webSocket,
      headers: { "x-tab": "1" },
      release: "progressive",
      onError: (error) => errors.push(error),
    });
    await page.does((chat) => chat.sendMessage({ text: "Pay." }));
    await page.rests();
    await page.does((chat) => chat.approve("approval-c1", { edit: { amount: 7 } }));
    await page.does((chat) => chat.approve("approval-c2", { remember: "chat" }));
    await page.shows(() => expect(page.text).toBe("Done."));

    const [, answered] = sends(sockets);
    expect(answered?.body).toEqual({
      edits: { "approval-c1": { amount: 7 } },
      remember: { "approval-c2": "chat" },
    });
    expect(answered?.headers).toEqual({
      "x-ai-sdk": String(MAJOR),
      "x-release": "progressive",
      "x-tab": "1",
    });
    expect(errors).toEqual([]);
  });

  test("a refusal with 409 loads the chat anew", async () => {
    const sockets = answering({ errorText: "Wait for the answer.", code: "turn_running" });
    const server = new FakeServer();
    server.stored = storedAs("ready", [USER]);
    const page = new Page(server, { kind, webSocket: sockets.webSocket });
    await page.does((chat) => chat.sendMessage({ text: "And then?" }));
    await page.shows(() => expect(page.chat.refusal?.unsent).toBeDefined());

    const refused = { message: "Wait for the answer.", status: 409, code: "turn_running" };
    expect(page.chat.error).toMatchObject(refused);
    expect(page.chat.messages).toEqual([USER]);
  });

  test("another refusal loads nothing", async () => {
    const sockets = answering({ errorText: "Slow down.", code: "too_many_requests" });
    const server = new FakeServer();
    const page = new Page(server, { kind, webSocket: sockets.webSocket });
    await page.does((chat) => chat.sendMessage({ text: "Go." }));
    await page.rests("error");

    expect(page.chat.error).toMatchObject({ message: "Slow down.", status: 429 });
    expect(server.log).toEqual([]);
  });

  test("a page that goes closes its socket and aborts nothing", async () => {
    const sockets = new FakeSockets();
    sockets.heard = (socket, { type, requestId }) => {
      if (type === "resume") socket.say({ type: "no-active", requestId });
      else if (type === "send") socket.chunks(requestId, turn(text("Half")).slice(0, 3));
    };
    const errors: Error[] = [];
    const page = new Page(new FakeServer(), {
      kind,
      webSocket: sockets.webSocket,
      onError: (error) => errors.push(error),
    });
    await page.does((chat) => void chat.sendMessage({ text: "Go." }));
    await page.shows(() => expect(page.text).toBe("Half"));
    await page.does(() => page.rendered.unmount());

    expect(sockets.last.closedWith).toBe(1000);
    expect(sockets.frames.map(({ type }) => type)).not.toContain("abort");
    expect(errors).toEqual([]);
  });

  test("the chat goes from one transport to the other and back", async () => {
    const sockets = answering(turn(output("c1"), ANSWER));
    const server = new FakeServer();
    server.posts.push(streams(turn(step(gate("c1")))), refuses(429, "too_many_requests", "Wait."));
    const page = new Page(server, { webSocket: sockets.webSocket });
    await page.does((chat) => chat.sendMessage({ text: "Pay." }));
    await page.rests();
    page.rendered.rerender({ kind });
    await page.does((chat) => chat.approve("approval-c1"));
    await page.shows(() => expect(page.text).toBe("Done."));
    expect([server.sent.length, sends(sockets).length]).toEqual([1, 1]);

    page.rendered.rerender({ kind: "sse" });
    await page.shows(() => expect(sockets.last.closedWith).toBe(1000));
    await page.does((chat) => chat.sendMessage({ text: "Thanks." }));
    await page.rests("error");
    expect([server.sent.length, sends(sockets).length]).toEqual([2, 1]);
  });
});

test("AI SDK 6 brings no stock transport for sockets, and is told so", async () => {
  const { webSocket } = answering(turn(ANSWER));
  const page = new Page(new FakeServer(), { kind: "websocket", webSocket, resume: false });
  await page.does((chat) => chat.sendMessage({ text: "Go." }));
  await page.rests(MAJOR === 6 ? "error" : "ready");

  const sentence = MAJOR === 6 ? 'use kind: "sse" or "bidi"' : undefined;
  expect(page.chat.error?.message).toEqual(sentence && expect.stringContaining(sentence));
});
