import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { assistantText, createBidiChat } from "../../testing/bidi-chat.ts";
import type { RequestRefused } from "../refusals.ts";
import { ANSWER, gatedCall, step, text, turn } from "../testing/chunks.ts";
import { type Frame, ScriptedSockets } from "../testing/scripted-sockets.ts";
import type { BidiChatTransportOptions } from "./bidi-transport.ts";
import { RECONNECT_DEFAULTS } from "./reconnecting-socket.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Run everything that does not wait for a timer. */
async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

const HALF = turn(step(text("Half"))).slice(0, 4);

/** A chat of AI SDK 7 that has received half of a response. */
async function startResponse(options: Partial<BidiChatTransportOptions> = {}) {
  const sockets = new ScriptedSockets();
  const { chat, transport } = createBidiChat(sockets, "7", options as never);
  void chat.sendMessage({ text: "Go." });
  await settled();
  const resumes = () => sockets.frames.filter(({ type }) => type === "resume");
  sockets.last.emitChunks(sockets.frames[0]?.requestId ?? "", HALF);
  await settled();
  return { sockets, chat, transport, resumes };
}

describe("a connection", () => {
  test("that was stable is reopened immediately, an unstable one with growing delays", async () => {
    const { sockets, resumes } = await startResponse({ reconnect: RECONNECT_DEFAULTS });
    await vi.advanceTimersByTimeAsync(2_000);
    const delays: number[] = [];
    let lost = Date.now();
    sockets.onConnect = (socket) => {
      delays.push(Date.now() - lost);
      lost = Date.now();
      socket.emitClose();
    };
    sockets.last.emitClose();
    await vi.advanceTimersByTimeAsync(40_000);

    const maxDelays = [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000];
    expect(delays.length).toBeGreaterThanOrEqual(maxDelays.length);
    for (const [index, max] of maxDelays.entries()) {
      expect(delays[index]).toBeLessThanOrEqual(max);
      expect(delays[index]).toBeGreaterThanOrEqual(Math.floor(max / 2));
    }
    sockets.onConnect = (socket) => socket.accept();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(resumes()).toHaveLength(1);
  });

  test("that cannot be reopened is given up", async () => {
    const { sockets, chat } = await startResponse({
      reconnect: { giveUpAfter: 60_000, connectTimeout: 5_000 },
    });
    sockets.onConnect = () => {};
    sockets.last.emitClose();
    await vi.advanceTimersByTimeAsync(59_000);
    expect(chat.status).toBe("streaming");
    await vi.advanceTimersByTimeAsync(30_000);

    const { error } = chat as unknown as { error: Error };
    expect([chat.status, error.message]).toEqual([
      "error",
      "The network connection could not be made.",
    ]);
    const count = sockets.all.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets.all).toHaveLength(count);
  });

  test("that was never open fails immediately", async () => {
    const sockets = new ScriptedSockets();
    sockets.onConnect = (socket) => socket.emitClose();
    const { chat } = createBidiChat(sockets, "7");
    void chat.sendMessage({ text: "Go." });
    await settled();

    expect([chat.status, sockets.all.length]).toEqual(["error", 1]);
  });

  test("that is idle is reopened, and heartbeats count as activity", async () => {
    const { sockets, chat, resumes } = await startResponse();
    const [first] = sockets.all;
    for (let beat = 0; beat < 8; beat += 1) {
      await vi.advanceTimersByTimeAsync(15_000);
      first?.emitFrame({ type: "heartbeat", requestId: "-" });
    }
    expect(sockets.all).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(19_900);
    expect(first?.closeCode).toBeUndefined();
    await vi.advanceTimersByTimeAsync(200);

    expect(first?.closeCode).toBe(4000);
    const [resume] = resumes();
    sockets.last.emitChunks(resume?.requestId ?? "", turn(step(text("Half done."))));
    sockets.last.emitFrame({ type: "end", requestId: resume?.requestId ?? "" });
    first?.emitChunks(sockets.frames[0]?.requestId ?? "", turn(ANSWER).slice(4), 4);
    await settled();
    expect([chat.status, assistantText(chat)]).toEqual(["ready", "Half done."]);
  });

  test("that is not needed is not reopened", async () => {
    const { sockets, chat } = await startResponse();
    sockets.last.emitFrame({ type: "end", requestId: sockets.frames[0]?.requestId ?? "" });
    await settled();
    sockets.last.emitClose();
    await vi.advanceTimersByTimeAsync(60_000);

    expect([chat.status, sockets.all.length]).toEqual(["ready", 1]);
    void chat.sendMessage({ text: "Go on." });
    await settled();
    expect(sockets.all).toHaveLength(2);
  });

  test("is reopened immediately when the browser is online", async () => {
    const online = new EventTarget();
    vi.stubGlobal("addEventListener", online.addEventListener.bind(online));
    vi.stubGlobal("removeEventListener", online.removeEventListener.bind(online));
    const { sockets } = await startResponse({ reconnect: { initialDelay: 10_000 } });
    sockets.last.emitClose();
    await settled();
    expect(sockets.all).toHaveLength(1);
    online.dispatchEvent(new Event("online"));
    await settled();
    expect(sockets.all).toHaveLength(2);
    vi.unstubAllGlobals();
  });

  test.each([
    { code: 4401, errorCode: "unauthenticated", status: 401 },
    { code: 4409, errorCode: "held_elsewhere", status: 409 },
    { code: 4409, reason: "taken_over", errorCode: "taken_over", status: 409 },
    { code: 1009, errorCode: "too_large", status: 413 },
    { code: 1008, errorCode: "malformed", status: 400 },
  ])(
    "that closes with $code $reason is not reopened",
    async ({ code, reason, errorCode, status }) => {
      const { sockets, chat } = await startResponse();
      sockets.last.emitClose(code, reason);
      await vi.advanceTimersByTimeAsync(60_000);

      const { error } = chat as unknown as { error: RequestRefused };
      expect(error).toMatchObject({ code: errorCode, status });
      expect(sockets.all).toHaveLength(1);
    },
  );

  test.each([1000, 1001, 1005, 1006, 1011, 1012, 1013])(
    "that closes with %i is reopened",
    async (code) => {
      const { sockets, resumes } = await startResponse();
      sockets.last.emitClose(code);
      await vi.advanceTimersByTimeAsync(1_000);

      expect([sockets.all.length, resumes().length]).toEqual([2, 1]);
    },
  );

  test.each([
    { title: "invalid JSON", data: "]" },
    { title: "chunks out of order", data: undefined },
  ])("that receives $title fails its requests", async ({ data }) => {
    const { sockets, chat } = await startResponse();
    const requestId = sockets.frames[0]?.requestId ?? "";
    if (data !== undefined) sockets.last.emitText(data);
    else sockets.last.emitChunks(requestId, turn(ANSWER), 7);
    await vi.advanceTimersByTimeAsync(60_000);

    expect([chat.status, sockets.all.length]).toEqual(["error", 1]);
    expect(sockets.last.closeCode).toBe(4000);
  });

  test("that the client closes stays closed until the next request", async () => {
    const { sockets, chat, transport } = await startResponse();
    transport.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([chat.status, sockets.all.length, sockets.last.closeCode]).toEqual(["error", 1, 1000]);

    sockets.onFrame = (socket, { requestId }: Frame) => {
      socket.emitChunks(requestId, turn(step(gatedCall("c1"))));
      socket.emitFrame({ type: "end", requestId });
    };
    void chat.sendMessage({ text: "Again." });
    await settled();
    expect([chat.status, sockets.all.length]).toEqual(["ready", 2]);
  });
});
