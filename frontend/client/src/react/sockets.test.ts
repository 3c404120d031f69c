import { describe, expect, test } from "vitest";
import { MAJOR, Page } from "../../testing/hook.ts";
import type { ResponseChunks } from "../testing/chunks.ts";
import { ANSWER, gatedCall, output, step, text, turn } from "../testing/chunks.ts";
import { refusal, ScriptedServer, storedChat, streamOf } from "../testing/scripted-server.ts";
import { type Frame, ScriptedSockets } from "../testing/scripted-sockets.ts";
import type { TransportKind } from "./options.ts";

const KINDS: readonly TransportKind[] = MAJOR === 7 ? ["websocket", "bidi"] : ["bidi"];
const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] };

/** Sockets that respond to each `send` with the next response or error frame. */
function respondingSockets(...responses: (ResponseChunks | Partial<Frame>)[]): ScriptedSockets {
  const sockets = new ScriptedSockets();
  sockets.onFrame = (socket, { type, requestId }) => {
    if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
    if (type !== "send") return;
    const response = responses.shift() ?? [];
    if (Array.isArray(response)) {
      socket.emitChunks(requestId, response);
      socket.emitFrame({ type: "end", requestId });
    } else socket.emitFrame({ type: "error", ...response, requestId });
  };
  return sockets;
}

function sendFrames(sockets: ScriptedSockets): Frame[] {
  return sockets.frames.filter(({ type }) => type === "send");
}

describe.each(KINDS)("over %s", (kind) => {
  test("decisions, edits and grants are sent in one frame", async () => {
    const sockets = respondingSockets(
      turn(step(gatedCall("c1"), gatedCall("c2"))),
      turn(output("c1"), ANSWER),
    );
    const errors: Error[] = [];
    const page = new Page(new ScriptedServer(), {
      kind,
      webSocket: sockets.webSocket,
      headers: { "x-tab": "1" },
      release: "progressive",
      onError: (error) => errors.push(error),
    });
    await page.act((chat) => chat.sendMessage({ text: "Pay." }));
    await page.waitForStatus();
    await page.act((chat) => chat.approve("approval-c1", { edit: { amount: 7 } }));
    await page.act((chat) => chat.approve("approval-c2", { remember: "chat" }));
    await page.waitFor(() => expect(page.text).toBe("Done."));

    const [, decision] = sendFrames(sockets);
    expect(decision?.body).toEqual({
      edits: { "approval-c1": { amount: 7 } },
      remember: { "approval-c2": "chat" },
    });
    expect(decision?.headers).toEqual({
      "x-ai-sdk": String(MAJOR),
      "x-release": "progressive",
      "x-tab": "1",
    });
    expect(errors).toEqual([]);
  });

  test("a refusal with 409 reloads the chat", async () => {
    const sockets = respondingSockets({ errorText: "Wait for the answer.", code: "turn_running" });
    const server = new ScriptedServer();
    server.onLoad = storedChat("ready", [USER]);
    const page = new Page(server, { kind, webSocket: sockets.webSocket });
    await page.act((chat) => chat.sendMessage({ text: "And then?" }));
    await page.waitFor(() => expect(page.chat.refusal?.unsent).toBeDefined());

    const refused = { message: "Wait for the answer.", status: 409, code: "turn_running" };
    expect(page.chat.error).toMatchObject(refused);
    expect(page.chat.messages).toEqual([USER]);
  });

  test("a message that the server did not store returns as unsent", async () => {
    const sockets = respondingSockets({ errorText: "Slow down.", code: "too_many_requests" });
    const server = new ScriptedServer();
    const page = new Page(server, { kind, webSocket: sockets.webSocket });
    await page.act((chat) => chat.sendMessage({ text: "Go." }));
    await page.waitFor(() => expect(page.chat.refusal?.unsent).toBeDefined());

    expect(page.chat.error).toMatchObject({ message: "Slow down.", status: 429 });
    expect(page.chat.messages).toEqual([]);
  });

  test("unmounting closes the socket without an abort", async () => {
    const sockets = new ScriptedSockets();
    sockets.onFrame = (socket, { type, requestId }) => {
      if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      else if (type === "send") socket.emitChunks(requestId, turn(text("Half")).slice(0, 3));
    };
    const errors: Error[] = [];
    const page = new Page(new ScriptedServer(), {
      kind,
      webSocket: sockets.webSocket,
      onError: (error) => errors.push(error),
    });
    await page.act((chat) => void chat.sendMessage({ text: "Go." }));
    await page.waitFor(() => expect(page.text).toBe("Half"));
    await page.act(() => page.rendered.unmount());

    expect(sockets.last.closeCode).toBe(1000);
    expect(sockets.frames.map(({ type }) => type)).not.toContain("abort");
    expect(errors).toEqual([]);
  });

  test("the chat can change its transport and change back", async () => {
    const sockets = respondingSockets(turn(output("c1"), ANSWER));
    const server = new ScriptedServer();
    server.postResponders.push(
      streamOf(turn(step(gatedCall("c1")))),
      refusal(429, "too_many_requests", "Wait."),
    );
    const page = new Page(server, { webSocket: sockets.webSocket });
    await page.act((chat) => chat.sendMessage({ text: "Pay." }));
    await page.waitForStatus();
    page.rendered.rerender({ kind });
    await page.act((chat) => chat.approve("approval-c1"));
    await page.waitFor(() => expect(page.text).toBe("Done."));
    expect([server.posts.length, sendFrames(sockets).length]).toEqual([1, 1]);

    page.rendered.rerender({ kind: "sse" });
    await page.waitFor(() => expect(sockets.last.closeCode).toBe(1000));
    await page.act((chat) => chat.sendMessage({ text: "Thanks." }));
    await page.waitForStatus("error");
    expect([server.posts.length, sendFrames(sockets).length]).toEqual([2, 1]);
  });
});

test("the stock WebSocket transport is an error in AI SDK 6", async () => {
  const { webSocket } = respondingSockets(turn(ANSWER));
  const page = new Page(new ScriptedServer(), { kind: "websocket", webSocket, resume: false });
  await page.act((chat) => chat.sendMessage({ text: "Go." }));
  await page.waitForStatus(MAJOR === 6 ? "error" : "ready");

  const sentence = MAJOR === 6 ? 'use kind: "sse" or "bidi"' : undefined;
  expect(page.chat.error?.message).toEqual(sentence && expect.stringContaining(sentence));
});
