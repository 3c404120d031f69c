import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { VERSIONS } from "../../testing/ai-sdk-versions.ts";
import { assistantText, createBidiChat, majorOf } from "../../testing/bidi-chat.ts";
import { RequestRefused } from "../refusals.ts";
import { ANSWER, step, text, turn } from "../testing/chunks.ts";
import { ScriptedSockets } from "../testing/scripted-sockets.ts";
import type { BidiChatTransportOptions } from "./bidi-transport.ts";

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

describe.each(VERSIONS)("a client of ai %s", (version) => {
  const createChat = (
    sockets: ScriptedSockets,
    options: Partial<BidiChatTransportOptions> & Record<string, unknown> = {},
  ) => createBidiChat(sockets, version, options);

  test("sends the stock frames over one socket", async () => {
    const sockets = new ScriptedSockets();
    let count = 0;
    const { chat } = createChat(sockets, {
      headers: async () => ({ "X-Tab": String(++count), "x-ai-sdk": String(majorOf(version)) }),
      body: () => ({ remember: { a: "chat" } }),
    });
    sockets.onFrame = (socket, { type, requestId }) => {
      if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      if (type !== "send") return;
      socket.emitChunks(requestId, turn(ANSWER));
      socket.emitFrame({ type: "end", requestId });
    };
    void chat.sendMessage({ text: "Go." });
    await settled();
    void chat.resumeStream();
    await settled();

    expect([chat.status, assistantText(chat)]).toEqual(["ready", "Done."]);
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

  test("sends an abort when its reader stops", async () => {
    const sockets = new ScriptedSockets();
    const { chat } = createChat(sockets);
    void chat.sendMessage({ text: "Go." });
    await settled();
    const [send] = sockets.frames;
    sockets.last.emitChunks(send?.requestId ?? "", HALF);
    await settled();
    void chat.stop();
    await settled();

    expect(chat.status).toBe("ready");
    expect(sockets.frames[1]).toEqual({ type: "abort", requestId: send?.requestId });
    sockets.last.emitChunks(send?.requestId ?? "", turn(ANSWER).slice(4), 4);
    await settled();
    expect(assistantText(chat)).toBe("Half");
  });

  test("fails with the code of a refusal", async () => {
    const sockets = new ScriptedSockets();
    const { chat } = createChat(sockets);
    sockets.onFrame = (socket, { requestId }) =>
      socket.emitFrame({ type: "error", requestId, errorText: "It is over.", code: "superseded" });
    void chat.sendMessage({ text: "Go." });
    await settled();

    const { error } = chat as unknown as { error: RequestRefused };
    expect(error).toBeInstanceOf(RequestRefused);
    expect(error).toMatchObject({ message: "It is over.", code: "superseded", status: 409 });
    expect(sockets.last.closeCode).toBeUndefined();
  });

  test("sends a request again that may not have arrived", async () => {
    const sockets = new ScriptedSockets();
    const { chat } = createChat(sockets);
    const types: string[] = [];
    sockets.onFrame = (socket, { type, requestId }) => {
      types.push(type);
      if (types.length === 1) socket.emitClose();
      else if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      else {
        socket.emitChunks(requestId, turn(ANSWER));
        socket.emitFrame({ type: "end", requestId });
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    expect(types).toEqual(["send", "resume", "send"]);
    const [one, , other] = sockets.frames;
    expect(other).toEqual({ ...one, requestId: other?.requestId });
    expect([chat.status, assistantText(chat)]).toEqual(["ready", "Done."]);
  });

  test("retries a running turn that cannot be resumed", async () => {
    const sockets = new ScriptedSockets();
    let runs = 3;
    const loadChat = async () => {
      runs -= 1;
      const parts = [
        { type: "step-start" },
        ...[{ type: "text", text: "Half done.", state: "done" }],
      ];
      const messages = [{ id: "m1", role: "assistant", parts }];
      return { id: "chat", title: "", status: runs > 0 ? "running" : "ready", messages } as const;
    };
    const { chat } = createChat(sockets, { loadChat: loadChat as never });
    sockets.onFrame = (socket, { type, requestId }) => {
      if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      else {
        socket.emitChunks(requestId, HALF);
        socket.emitClose();
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_900);
    expect([runs, chat.status]).toEqual([1, "streaming"]);
    await vi.advanceTimersByTimeAsync(1_000);

    expect([runs, chat.status, assistantText(chat)]).toEqual([0, "ready", "Half done."]);
  });

  test.each([
    { title: "loadChat is not given", loadChat: undefined },
    { title: "the chat does not exist", loadChat: async () => undefined },
  ])("fails with a network error if $title", async ({ loadChat }) => {
    const sockets = new ScriptedSockets();
    const { chat } = createChat(sockets, { ...(loadChat && { loadChat: loadChat as never }) });
    sockets.onFrame = (socket, { type, requestId }) => {
      if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      else if (type === "send") {
        socket.emitChunks(requestId, HALF);
        socket.emitClose();
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    const { error } = chat as unknown as { error: Error };
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain("network");
    expect(assistantText(chat)).toBe("Half");
  });

  test.each([
    { title: "before its first chunk", begun: 0, text: "" },
    { title: "in the middle", begun: HALF.length, text: "Half done." },
  ])("fails with the error of the live run $title", async (row) => {
    const sockets = new ScriptedSockets();
    const parts = [{ type: "step-start" }, { type: "text", text: "Half done.", state: "done" }];
    const loadChat = async () => ({ status: "ready", messages: [{ id: "m1", parts }] });
    const { chat } = createChat(sockets, { loadChat: loadChat as never });
    const failed = { errorText: "The model failed; id 1.", code: "internal" };
    sockets.onFrame = (socket, { type, requestId }) => {
      if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      if (type !== "send") return;
      socket.emitChunks(requestId, HALF.slice(0, row.begun));
      socket.emitFrame({ type: "error", requestId: "live", ...failed });
      socket.emitClose(1011);
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    const { error } = chat as unknown as { error: Error };
    expect([chat.status, error.message]).toEqual(["error", "The model failed; id 1."]);
    expect(assistantText(chat)).toBe(row.text);
    expect(sockets.frames.filter(({ type }) => type === "send")).toHaveLength(1);
  });

  test("resets text that is not in the stored message, if the major supports it", async () => {
    const sockets = new ScriptedSockets();
    const parts = [
      { type: "step-start" },
      { type: "text", text: "Something else.", state: "done" },
    ];
    const loadChat = async () => ({ status: "ready", messages: [{ id: "m1", parts }] });
    const { chat } = createChat(sockets, { loadChat: loadChat as never });
    sockets.onFrame = (socket, { type, requestId }) => {
      if (type === "resume") socket.emitFrame({ type: "no-active", requestId });
      else if (type === "send") {
        socket.emitChunks(requestId, HALF);
        socket.emitClose();
      }
    };
    void chat.sendMessage({ text: "Go." });
    await vi.advanceTimersByTimeAsync(1_000);

    const ended = majorOf(version) === 7 ? ["ready", "Something else."] : ["error", "Half"];
    expect([chat.status, assistantText(chat)]).toEqual(ended);
  });

  test("resumes two chats on one socket independently", async () => {
    const sockets = new ScriptedSockets();
    const { transport } = createChat(sockets);
    const send = async (chatId: string) => {
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
      sockets.last.emitChunks(requestId, turn(step(text(`Half of ${id}`))));
      sockets.last.emitFrame({ type: "end", requestId });
    };
    sockets.onFrame = (socket, { type, id, requestId }) => {
      if (type === "resume") resumed(id, requestId);
      else socket.emitChunks(requestId, HALF);
    };
    const both = Promise.all([send("a"), send("b")]);
    await settled();
    sockets.last.emitClose();
    await vi.advanceTimersByTimeAsync(1_000);

    expect(await both).toEqual(["Half of a", "Half of b"]);
    expect(sockets.all).toHaveLength(2);
  });
});
