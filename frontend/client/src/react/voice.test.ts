import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { audioBrowser } from "../../testing/audio.ts";
import type { Response } from "../../testing/chunks.ts";
import { ANSWER, gate, step, turn, waits } from "../../testing/chunks.ts";
import { FakeServer } from "../../testing/fake-server.ts";
import { FakeSockets, type Frame } from "../../testing/fake-sockets.ts";
import { Page } from "../../testing/hook.ts";

beforeEach(() => {
  audioBrowser();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const LIVE = { requestId: "live" };
const READY = { ...LIVE, type: "ready", inputRate: 16_000, outputRate: 24_000 };
const SPOKEN = { ...LIVE, type: "turn", messageId: "m1", userMessageId: "u1" };

/** A page on which somebody speaks; a resume that names a message gets this response. */
async function speaking(answer: Response): Promise<{ page: Page; sockets: FakeSockets }> {
  const sockets = new FakeSockets();
  sockets.opened = (socket) => {
    socket.accept();
    socket.say(READY);
  };
  sockets.heard = (socket, { type, requestId, body }: Frame) => {
    const { messageId } = (body ?? {}) as { messageId?: string };
    if (type !== "resume") return;
    if (messageId === undefined) socket.say({ type: "no-active", requestId });
    else {
      socket.say({ type: "start", requestId });
      socket.chunks(requestId, answer);
      socket.say({ type: "end", requestId });
    }
  };
  const page = new Page(new FakeServer(), {
    kind: "bidi",
    live: true,
    webSocket: sockets.webSocket,
  });
  await page.does((chat) => chat.voice.start());
  expect(page.chat.voice.status).toBe("on");
  return { page, sockets };
}

test("a connection that a message has opened already can be spoken over", async () => {
  const sockets = new FakeSockets();
  sockets.opened = (socket) => {
    socket.accept();
    socket.say(READY);
  };
  sockets.heard = (socket, { type, requestId }: Frame) => {
    if (type !== "send") return socket.say({ type: "no-active", requestId });
    socket.chunks(requestId, turn(ANSWER));
    socket.say({ type: "end", requestId });
  };
  const { webSocket } = sockets;
  const page = new Page(new FakeServer(), { kind: "bidi", live: true, webSocket });
  await page.does((chat) => chat.sendMessage({ text: "Hello" }));
  await page.shows(() => expect(page.text).toBe("Done."));
  await page.does((chat) => chat.voice.start());
  expect(page.chat.voice.status).toBe("on");
  expect(sockets.all).toHaveLength(1);
});

function said(text: string, final: boolean): Frame {
  return { ...LIVE, type: "transcript", messageId: "u1", role: "user", text, final };
}

test("a spoken message and its answer stand in the chat", async () => {
  const { page, sockets } = await speaking(turn(ANSWER));
  await page.does(() => {
    sockets.last.say(said("Pay", false));
    sockets.last.say(SPOKEN);
  });
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(page.chat.messages.map(({ id, role }) => [id, role])).toEqual([
    ["u1", "user"],
    ["m1", "assistant"],
  ]);
  await page.does(() => sockets.last.say(said("Pay five.", true)));
  expect(page.chat.messages[0]?.parts).toEqual([{ type: "text", text: "Pay five." }]);
  const resumes = sockets.frames.filter(({ type }) => type === "resume");
  expect(resumes.at(-1)?.body).toEqual({ messageId: "m1" });
  expect(sockets.last.url).toBe("ws://page/api/live?chat=chat");
});

test("what was heard late stands before its answer, and what was never said does not", async () => {
  const { page, sockets } = await speaking(turn(ANSWER));
  await page.does(() => sockets.last.say(SPOKEN));
  await page.shows(() => expect(page.text).toBe("Done."));
  expect(page.chat.messages.map(({ id }) => id)).toEqual(["m1"]);
  await page.does(() => sockets.last.say(said("Pay", false)));
  await page.does(() => sockets.last.say(said("Pay five.", true)));

  expect(page.chat.messages.map(({ id }) => id)).toEqual(["u1", "m1"]);
  expect(page.chat.messages[0]?.parts).toEqual([{ type: "text", text: "Pay five." }]);
});

test.each([
  { state: "approved", shown: "approval-responded", approved: true },
  { state: "denied", shown: "approval-responded", approved: false },
  { state: "superseded", shown: "output-denied", approved: false },
  { state: "expired", shown: "output-denied", approved: false },
])("a request that is $state elsewhere does not ask any more", async (row) => {
  const { page, sockets } = await speaking(waits(step(gate("c1"))));
  await page.does(() => sockets.last.say(SPOKEN));
  await page.shows(() => expect(page.chat.pending).toHaveLength(1));
  const { state, shown, approved } = row;
  const news = { ...LIVE, type: "approval", approvalId: "approval-c1", state, reason: "So." };
  await page.does(() => sockets.last.say(news));

  expect(page.states).toEqual([shown]);
  const part = page.parts.find(({ toolCallId }) => toolCallId === "c1");
  expect(part?.approval).toMatchObject({ approved, reason: "So." });
  expect(page.chat.pending).toEqual([]);
  await page.does(() => sockets.last.say({ ...news, state: "executing" }));
  expect(page.states).toEqual([shown]);
});

test("a voice ends when the page takes another transport, and when it goes", async () => {
  const { page, sockets } = await speaking([]);
  page.rendered.rerender({ kind: "sse" });
  await page.shows(() => expect(page.chat.voice.status).toBe("off"));
  expect(sockets.last.closedWith).toBe(1000);

  page.rendered.rerender({});
  await page.does((chat) => chat.voice.start());
  expect(page.chat.voice.status).toBe("on");
  page.rendered.unmount();
  await vi.waitFor(() => expect(sockets.last.closedWith).toBe(1000));
});

test("a voice without a live connection says what is missing", async () => {
  const page = new Page(new FakeServer());
  await page.does((chat) => expect(chat.voice.start()).rejects.toThrow('kind: "bidi" and live'));

  expect(page.chat.voice.status).toBe("off");
  expect(page.chat.voice.error?.message).toContain("live: true");
});
