import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ANSWER, gate, step, text, turn } from "../../testing/chunks.ts";
import { FakeSockets, type Frame } from "../../testing/fake-sockets.ts";
import { chatOver, texts } from "../../testing/told-chat.ts";
import type { RequestRefused } from "../refusals.ts";
import type { BidiOptions } from "./bidi-transport.ts";
import { PATIENCE } from "./socket.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Let everything happen that no time has to pass for. */
async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

const HALF = turn(step(text("Half"))).slice(0, 4);

/** A chat of AI SDK 7 whose answer is half there. */
async function halfway(options: Partial<BidiOptions> = {}) {
  const sockets = new FakeSockets();
  const { chat, transport } = chatOver(sockets, "7", options as never);
  void chat.sendMessage({ text: "Go." });
  await settled();
  const resumes = () => sockets.frames.filter(({ type }) => type === "resume");
  sockets.last.chunks(sockets.frames[0]?.requestId ?? "", HALF);
  await settled();
  return { sockets, chat, transport, resumes };
}

describe("a connection", () => {
  test("that held is made again at once, one that does not hold less and less often", async () => {
    const { sockets, resumes } = await halfway({ patience: PATIENCE });
    await vi.advanceTimersByTimeAsync(2_000);
    const waits: number[] = [];
    sockets.opened = (socket) => socket.end();
    let lost = Date.now();
    sockets.last.end();
    for (let attempt = 0; attempt < 9; attempt += 1) {
      const count = sockets.all.length;
      while (sockets.all.length === count && Date.now() - lost < 60_000) {
        await vi.advanceTimersByTimeAsync(25);
      }
      waits.push(Date.now() - lost);
      lost = Date.now();
      await settled();
    }

    const most = [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000];
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeLessThanOrEqual((most[index] ?? 0) + 50);
      expect(wait).toBeGreaterThanOrEqual((most[index] ?? 0) / 2);
    }
    sockets.opened = (socket) => socket.accept();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(resumes()).toHaveLength(1);
  });

  test("that cannot be made for long is given up", async () => {
    const { sockets, chat } = await halfway({ patience: { giveUp: 60_000, connect: 5_000 } });
    sockets.opened = () => {};
    sockets.last.end();
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

  test("that could never be made is told at once", async () => {
    const sockets = new FakeSockets();
    sockets.opened = (socket) => socket.end();
    const { chat } = chatOver(sockets, "7");
    void chat.sendMessage({ text: "Go." });
    await settled();

    expect([chat.status, sockets.all.length]).toEqual(["error", 1]);
  });

  test("that falls silent is made again, and heartbeats are no silence", async () => {
    const { sockets, chat, resumes } = await halfway();
    const [first] = sockets.all;
    for (let beat = 0; beat < 8; beat += 1) {
      await vi.advanceTimersByTimeAsync(15_000);
      first?.say({ type: "heartbeat", requestId: "-" });
    }
    expect(sockets.all).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(29_900);
    expect(first?.closedWith).toBeUndefined();
    await vi.advanceTimersByTimeAsync(200);

    expect(first?.closedWith).toBe(4000);
    const [resume] = resumes();
    sockets.last.chunks(resume?.requestId ?? "", turn(step(text("Half done."))));
    sockets.last.say({ type: "end", requestId: resume?.requestId ?? "" });
    first?.chunks(sockets.frames[0]?.requestId ?? "", turn(ANSWER).slice(4), 4);
    await settled();
    expect([chat.status, texts(chat)]).toEqual(["ready", "Half done."]);
  });

  test("that nobody needs is not made again", async () => {
    const { sockets, chat } = await halfway();
    sockets.last.say({ type: "end", requestId: sockets.frames[0]?.requestId ?? "" });
    await settled();
    sockets.last.end();
    await vi.advanceTimersByTimeAsync(60_000);

    expect([chat.status, sockets.all.length]).toEqual(["ready", 1]);
    void chat.sendMessage({ text: "Go on." });
    await settled();
    expect(sockets.all).toHaveLength(2);
  });

  test("is made at once when the network comes back", async () => {
    const online = new EventTarget();
    vi.stubGlobal("addEventListener", online.addEventListener.bind(online));
    vi.stubGlobal("removeEventListener", online.removeEventListener.bind(online));
    const { sockets } = await halfway({ patience: { firstWait: 10_000 } });
    sockets.last.end();
    await settled();
    expect(sockets.all).toHaveLength(1);
    online.dispatchEvent(new Event("online"));
    await settled();
    expect(sockets.all).toHaveLength(2);
    vi.unstubAllGlobals();
  });

  test.each([
    { code: 4401, told: "unauthenticated", status: 401 },
    { code: 4409, told: "held_elsewhere", status: 409 },
    { code: 1009, told: "too_large", status: 413 },
    { code: 1008, told: "malformed", status: 400 },
  ])("that ends with $code is not made again", async ({ code, told, status }) => {
    const { sockets, chat } = await halfway();
    sockets.last.end(code);
    await vi.advanceTimersByTimeAsync(60_000);

    const { error } = chat as unknown as { error: RequestRefused };
    expect(error).toMatchObject({ code: told, status });
    expect(sockets.all).toHaveLength(1);
  });

  test.each([1000, 1001, 1005, 1006, 1011, 1012, 1013])(
    "that ends with %i is made again",
    async (code) => {
      const { sockets, resumes } = await halfway();
      sockets.last.end(code);
      await vi.advanceTimersByTimeAsync(1_000);

      expect([sockets.all.length, resumes().length]).toEqual([2, 1]);
    },
  );

  test.each([
    { title: "no JSON", data: "]" },
    { title: "chunks out of order", data: undefined },
  ])("that brings $title is of no use", async ({ data }) => {
    const { sockets, chat } = await halfway();
    const requestId = sockets.frames[0]?.requestId ?? "";
    if (data !== undefined) sockets.last.text(data);
    else sockets.last.chunks(requestId, turn(ANSWER), 7);
    await vi.advanceTimersByTimeAsync(60_000);

    expect([chat.status, sockets.all.length]).toEqual(["error", 1]);
    expect(sockets.last.closedWith).toBe(4000);
  });

  test("that is closed by its owner stays closed, and the next request opens another", async () => {
    const { sockets, chat, transport } = await halfway();
    transport.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([chat.status, sockets.all.length, sockets.last.closedWith]).toEqual(["error", 1, 1000]);

    sockets.heard = (socket, { requestId }: Frame) => {
      socket.chunks(requestId, turn(step(gate("c1"))));
      socket.say({ type: "end", requestId });
    };
    void chat.sendMessage({ text: "Again." });
    await settled();
    expect([chat.status, sockets.all.length]).toEqual(["ready", 2]);
  });
});
