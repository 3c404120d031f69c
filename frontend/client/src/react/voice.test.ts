import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { stubAudio } from "../../testing/audio.ts";
import { Page } from "../../testing/hook.ts";
import type { ResponseChunks } from "../testing/chunks.ts";
import { ANSWER, gatedCall, step, turn, waitingTurn } from "../testing/chunks.ts";
import { ScriptedServer } from "../testing/scripted-server.ts";
import { type Frame, ScriptedSockets } from "../testing/scripted-sockets.ts";

beforeEach(() => {
  stubAudio();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const LIVE = { requestId: "live" };
const READY = { ...LIVE, type: "ready", inputRate: 16_000, outputRate: 24_000 };
const SPOKEN = { ...LIVE, type: "turn", messageId: "m1", userMessageId: "u1" };

/** A page with a started voice; a resume of a message gets this response. */
async function startVoice(
  answer: ResponseChunks,
): Promise<{ page: Page; sockets: ScriptedSockets }> {
  const sockets = new ScriptedSockets();
  sockets.onConnect = (socket) => {
    socket.accept();
    socket.emitFrame(READY);
  };
  sockets.onFrame = (socket, { type, requestId, body }: Frame) => {
    const { messageId } = (body ?? {}) as { messageId?: string };
    if (type !== "resume") return;
    if (messageId === undefined) socket.emitFrame({ type: "no-active", requestId });
    else {
      socket.emitFrame({ type: "start", requestId });
      socket.emitChunks(requestId, answer);
      socket.emitFrame({ type: "end", requestId });
    }
  };
  const page = new Page(new ScriptedServer(), {
    kind: "bidi",
    live: true,
    webSocket: sockets.webSocket,
  });
  await page.act((chat) => chat.voice.start());
  expect(page.chat.voice.status).toBe("on");
  return { page, sockets };
}

test("voice uses the connection that a message has opened", async () => {
  const sockets = new ScriptedSockets();
  sockets.onConnect = (socket) => {
    socket.accept();
    socket.emitFrame(READY);
  };
  sockets.onFrame = (socket, { type, requestId }: Frame) => {
    if (type !== "send") return socket.emitFrame({ type: "no-active", requestId });
    socket.emitChunks(requestId, turn(ANSWER));
    socket.emitFrame({ type: "end", requestId });
  };
  const { webSocket } = sockets;
  const page = new Page(new ScriptedServer(), { kind: "bidi", live: true, webSocket });
  await page.act((chat) => chat.sendMessage({ text: "Hello" }));
  await page.waitFor(() => expect(page.text).toBe("Done."));
  await page.act((chat) => chat.voice.start());
  expect(page.chat.voice.status).toBe("on");
  expect(sockets.all).toHaveLength(1);
});

function transcript(text: string, final: boolean): Frame {
  return { ...LIVE, type: "transcript", messageId: "u1", role: "user", text, final };
}

test("a spoken message and its answer are added to the chat", async () => {
  const { page, sockets } = await startVoice(turn(ANSWER));
  await page.act(() => {
    sockets.last.emitFrame(transcript("Pay", false));
    sockets.last.emitFrame(SPOKEN);
  });
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(page.chat.messages.map(({ id, role }) => [id, role])).toEqual([
    ["u1", "user"],
    ["m1", "assistant"],
  ]);
  await page.act(() => sockets.last.emitFrame(transcript("Pay five.", true)));
  expect(page.chat.messages[0]?.parts).toEqual([{ type: "text", text: "Pay five." }]);
  const resumes = sockets.frames.filter(({ type }) => type === "resume");
  expect(resumes.at(-1)?.body).toEqual({ messageId: "m1" });
  expect(sockets.last.url).toBe("ws://page/api/live?chat=chat");
});

test("a late transcript is inserted before its answer", async () => {
  const { page, sockets } = await startVoice(turn(ANSWER));
  await page.act(() => sockets.last.emitFrame(SPOKEN));
  await page.waitFor(() => expect(page.text).toBe("Done."));
  expect(page.chat.messages.map(({ id }) => id)).toEqual(["m1"]);
  await page.act(() => sockets.last.emitFrame(transcript("Pay", false)));
  await page.act(() => sockets.last.emitFrame(transcript("Pay five.", true)));

  expect(page.chat.messages.map(({ id }) => id)).toEqual(["u1", "m1"]);
  expect(page.chat.messages[0]?.parts).toEqual([{ type: "text", text: "Pay five." }]);
});

test.each([
  { state: "approved", shown: "approval-responded", approved: true },
  { state: "denied", shown: "approval-responded", approved: false },
  { state: "superseded", shown: "output-denied", approved: false },
  { state: "expired", shown: "output-denied", approved: false },
])("an approval that is $state elsewhere is no longer pending", async (row) => {
  const { page, sockets } = await startVoice(waitingTurn(step(gatedCall("c1"))));
  await page.act(() => sockets.last.emitFrame(SPOKEN));
  await page.waitFor(() => expect(page.chat.pending).toHaveLength(1));
  const { state, shown, approved } = row;
  const frame = { ...LIVE, type: "approval", approvalId: "approval-c1", state, reason: "So." };
  await page.act(() => sockets.last.emitFrame(frame));

  expect(page.states).toEqual([shown]);
  const part = page.parts.find(({ toolCallId }) => toolCallId === "c1");
  expect(part?.approval).toMatchObject({ approved, reason: "So." });
  expect(page.chat.pending).toEqual([]);
  await page.act(() => sockets.last.emitFrame({ ...frame, state: "executing" }));
  expect(page.states).toEqual([shown]);
});

test("voice stops when the transport changes and on unmount", async () => {
  const { page, sockets } = await startVoice([]);
  page.rendered.rerender({ kind: "sse" });
  await page.waitFor(() => expect(page.chat.voice.status).toBe("off"));
  expect(sockets.last.closeCode).toBe(1000);

  page.rendered.rerender({});
  await page.act((chat) => chat.voice.start());
  expect(page.chat.voice.status).toBe("on");
  page.rendered.unmount();
  await vi.waitFor(() => expect(sockets.last.closeCode).toBe(1000), { timeout: 30_000 });
});

test("starting voice without a live connection is an error that names the options", async () => {
  const page = new Page(new ScriptedServer());
  await page.act((chat) => expect(chat.voice.start()).rejects.toThrow('kind: "bidi" and live'));

  expect(page.chat.voice.status).toBe("off");
  expect(page.chat.voice.error?.message).toContain("live: true");
});
