import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ANSWER, step, text, turn } from "../../testing/chunks.ts";
import { FakeSockets } from "../../testing/fake-sockets.ts";
import { VERSIONS } from "../../testing/scripted-chat.ts";
import { chatOver, majorOf, texts } from "../../testing/told-chat.ts";
import { RequestRefused } from "../refusals.ts";
import type { BidiOptions } from "./bidi-transport.ts";

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

describe.each(VERSIONS)("a client of ai %s", (version) => {
  const make = (
    sockets: FakeSockets,
    options: Partial<BidiOptions> & Record<string, unknown> = {},
  ) => chatOver(sockets, version, options);

  test("sends the stock frames over one socket", async () => {
    const sockets = new FakeSockets();
    let count = 0;
    const { chat } = make(sockets, {
      headers: async () => ({ "X-Tab": String(++count), "x-ai-sdk": String(majorOf(version)) }),
      body: () => ({ remember: { a: "chat" } }),
    });
    sockets.heard = (socket, { type, requestId }) => {
      if (type === "resume") socket.say({ type: "no-active", requestId });
      if (type !== "send") return;
      socket.chunks(requestId, turn(ANSWER));
      socket.say({ type: "end", requestId });
    };
    void chat.sendMessage({ text: "Go." });
    await settled();
    void chat.resumeStream();
    await settled();

    expect([chat.status, texts(chat)]).toEqual(["ready", "Done."]);
    expect(sockets.all).toHaveLength(1);
    expect(sockets.last.url).toBe("wss://page/api/chat/ws");
    const [send, resume] = sockets.frames;
    const common = { id: "chat", body: { remember: { a: "chat" } } };
    expect(send).toMatchObject({ ...common, type: "send", trigger: "submit-message" });
    expect(send?.messages).toHaveLength(1);
    expect(send?.headers).toEqual({ "x-tab": "1", "x-ai-sdk": String(majorOf(version)) });
    expect(resume).toMatchObject({ ...common, type: "resume", headers: { "x-tab": "2" } });
    expect(resume).not.toHaveProperty("messages");
    expect(new Set(sockets.frames.map(({ requestId }) => requestId)).size).toBe(2);
  });

  test("says with an abort that its reader leaves", async () => {
    const sockets = new FakeSockets();
    const { chat } = make(sockets);
    void chat.sendMessage({ text: "Go." });
    await settled();
    const [send] = sockets.frames;
    sockets.last.chunks(send?.requestId ?? "", HALF);
    await settled();
    void chat.stop();
    await settled();

    expect(chat.status).toBe("ready");
    expect(sockets.frames[1]).toEqual({ type: "abort", requestId: send?.requestId });
    sockets.last.chunks(send?.requestId ?? "", turn(ANSWER).slice(4), 4);
    await settled();
    expect(texts(chat)).toBe("Half");
  });

  test("shows a refusal with its code", async () => {
    const sockets = new FakeSockets();
    const { chat } = make(sockets);
    sockets.heard = (socket, { requestId }) =>
      socket.say({ type: "error", requestId, errorText: "It is over.", code: "superseded" });
    void chat.sendMessage({ text: "Go." });
    await settled();

    const { error } = chat as unknown as { error: RequestRefused };
    expect(error).toBeInstanceOf(RequestRefused);
    expect(error).toMatchObject({ message: "It is over.", code: "superseded", status: 409 });
    expect(sockets.last.closedWith).toBeUndefined();
  });

  test("sends once more what may never have arrived", async () => {
    const sockets = new FakeSockets();
    const { chat } = make(sockets);
    const seen: string[] = [];
    sockets.heard = (socket, { type, requestId }) => {
      seen.push(type);
      if (seen.length === 1) socket.end();
      else if (type === "resume") socket.say({ type: "no-active", requestId });
      else {
        socket.chunks(requestId, turn(ANSWER));
        socket.say({ type: "end", requestId });
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    expect(seen).toEqual(["send", "resume", "send"]);
    const [one, , other] = sockets.frames;
    expect(other).toEqual({ ...one, requestId: other?.requestId });
    expect([chat.status, texts(chat)]).toEqual(["ready", "Done."]);
  });

  test("asks again later while it runs and cannot be joined", async () => {
    const sockets = new FakeSockets();
    let runs = 3;
    const stored = async () => {
      runs -= 1;
      const parts = [
        { type: "step-start" },
        ...[{ type: "text", text: "Half done.", state: "done" }],
      ];
      const messages = [{ id: "m1", role: "assistant", parts }];
      return { id: "chat", title: "", status: runs > 0 ? "running" : "ready", messages } as const;
    };
    const { chat } = make(sockets, { stored: stored as never });
    sockets.heard = (socket, { type, requestId }) => {
      if (type === "resume") socket.say({ type: "no-active", requestId });
      else {
        socket.chunks(requestId, HALF);
        socket.end();
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_900);
    expect([runs, chat.status]).toEqual([1, "streaming"]);
    await vi.advanceTimersByTimeAsync(1_000);

    expect([runs, chat.status, texts(chat)]).toEqual([0, "ready", "Half done."]);
  });

  test.each([
    { title: "nothing can be asked", stored: undefined },
    { title: "there is no such chat", stored: async () => undefined },
  ])("tells a lost answer as a lost connection where $title", async ({ stored }) => {
    const sockets = new FakeSockets();
    const { chat } = make(sockets, { ...(stored && { stored: stored as never }) });
    sockets.heard = (socket, { type, requestId }) => {
      if (type === "resume") socket.say({ type: "no-active", requestId });
      else if (type === "send") {
        socket.chunks(requestId, HALF);
        socket.end();
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    const { error } = chat as unknown as { error: Error };
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain("network");
    expect(texts(chat)).toBe("Half");
  });

  test.each([
    { title: "before its first chunk", begun: 0, text: "" },
    { title: "in the middle", begun: HALF.length, text: "Half done." },
  ])("ends with what the server said when the live run failed $title", async (row) => {
    const sockets = new FakeSockets();
    const parts = [{ type: "step-start" }, { type: "text", text: "Half done.", state: "done" }];
    const stored = async () => ({ status: "ready", messages: [{ id: "m1", parts }] });
    const { chat } = make(sockets, { stored: stored as never });
    const failed = { errorText: "The model failed; id 1.", code: "internal" };
    sockets.heard = (socket, { type, requestId }) => {
      if (type === "resume") socket.say({ type: "no-active", requestId });
      if (type !== "send") return;
      socket.chunks(requestId, HALF.slice(0, row.begun));
      socket.say({ type: "error", requestId: "live", ...failed });
      socket.end(1011);
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    const { error } = chat as unknown as { error: Error };
    expect([chat.status, error.message]).toEqual(["error", "The model failed; id 1."]);
    expect(texts(chat)).toBe(row.text);
    expect(sockets.frames.filter(({ type }) => type === "send")).toHaveLength(1);
  });

  test("takes back what the stored message does not hold, where the major can", async () => {
    const sockets = new FakeSockets();
    const parts = [
      { type: "step-start" },
      { type: "text", text: "Something else.", state: "done" },
    ];
    const stored = async () => ({ status: "ready", messages: [{ id: "m1", parts }] });
    const { chat } = make(sockets, { stored: stored as never });
    sockets.heard = (socket, { type, requestId }) => {
      if (type === "resume") socket.say({ type: "no-active", requestId });
      else if (type === "send") {
        socket.chunks(requestId, HALF);
        socket.end();
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    const ended = majorOf(version) === 7 ? ["ready", "Something else."] : ["error", "Half"];
    expect([chat.status, texts(chat)]).toEqual(ended);
  });

  test("keeps two chats on one socket apart when it breaks", async () => {
    const sockets = new FakeSockets();
    const { transport } = make(sockets);
    const ask = async (chatId: string) => {
      const message = { id: `u-${chatId}`, role: "user", parts: [{ type: "text", text: chatId }] };
      const stream = await transport.sendMessages({
        trigger: "submit-message",
        chatId,
        messageId: undefined,
        messages: [message] as never,
        abortSignal: undefined,
      });
      const deltas: unknown[] = [];
      for await (const chunk of stream as never as AsyncIterable<{ delta?: string }>) {
        deltas.push(chunk.delta);
      }
      return deltas.join("");
    };
    const resumed = (id: unknown, requestId: string) => {
      sockets.last.chunks(requestId, turn(step(text(`Half of ${id}`))));
      sockets.last.say({ type: "end", requestId });
    };
    sockets.heard = (socket, { type, id, requestId }) => {
      if (type === "resume") resumed(id, requestId);
      else socket.chunks(requestId, HALF);
    };
    const both = Promise.all([ask("a"), ask("b")]);
    await settled();
    sockets.last.end();
    await vi.advanceTimersByTimeAsync(1_000);

    expect(await both).toEqual(["Half of a", "Half of b"]);
    expect(sockets.all).toHaveLength(2);
  });
});
