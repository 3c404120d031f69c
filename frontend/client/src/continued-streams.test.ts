import { describe, expect, test } from "vitest";
import type * as ai7 from "../../../e2e/conformance/clients/ai-7/client.ts";
import { CLIENTS, VERSIONS } from "../testing/ai-sdk-versions.ts";
import type { ChatLike } from "../testing/scripted-chat.ts";

// What the AI SDK makes of a resumed stream that continues a message instead of replaying it: the
// reason why a resume is a replay (docs/decisions).

type Chunk = { readonly type: string; readonly [key: string]: unknown };

const START: Chunk = { type: "start", messageId: "m1" };
const STEP: Chunk = { type: "start-step" };
const FINISH: Chunk = { type: "finish" };

const CALL = { toolCallId: "c1", toolName: "pay" };

/** A message that is cut, and the rest of it. */
const CASES: readonly {
  open: string;
  before: Chunk[];
  after: Chunk[];
  whole: string[];
  survivesReload?: true;
}[] = [
  {
    open: "a text",
    before: [
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "Hel" },
    ],
    after: [
      { type: "text-delta", id: "t", delta: "lo" },
      { type: "text-end", id: "t" },
    ],
    whole: ["Hello"],
  },
  {
    open: "a tool input",
    before: [
      { type: "tool-input-start", ...CALL },
      { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"amount":' },
    ],
    after: [
      { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: "5}" },
      { type: "tool-input-available", ...CALL, input: { amount: 5 } },
    ],
    whole: ["input-available"],
    survivesReload: true,
  },
  {
    open: "a call without its output",
    before: [{ type: "tool-input-available", ...CALL, input: {} }],
    after: [{ type: "tool-output-available", toolCallId: "c1", output: "paid" }],
    whole: ["output-available"],
  },
];

function streamOf(chunks: readonly Chunk[], error?: Error): ReadableStream {
  const left = [...chunks];
  return new ReadableStream({
    pull(controller) {
      const chunk = left.shift();
      if (chunk !== undefined) controller.enqueue(chunk);
      else if (error !== undefined) controller.error(error);
      else controller.close();
    },
  });
}

/** The texts and the states of the calls in the last message. */
function lastParts({ messages }: ChatLike): (string | undefined)[] {
  const parts = (messages.at(-1)?.parts ?? []) as { type: string; text?: string; state?: string }[];
  return parts.filter(({ type }) => type !== "step-start").map(({ text, state }) => text ?? state);
}

describe.each(VERSIONS)("ai %s", (version) => {
  const Chat = CLIENTS[version].Chat as unknown as typeof ai7.Chat;

  describe.each(CASES)("with $open", ({ before, after, whole, survivesReload = false }) => {
    /** Send a message whose answer is cut; the resumed stream continues it without a `start`. */
    function createChat(messages: ChatLike["messages"] = []): ChatLike {
      const lost = new TypeError("network error");
      const transport = {
        resumeStreamIsReplay: false,
        sendMessages: async () => streamOf([START, STEP, ...before], lost),
        reconnectToStream: async () => streamOf([...after, FINISH]),
      };
      return new Chat({ id: "chat", transport, messages: messages as never }) as never as ChatLike;
    }

    test("a continuation in the same page completes the message, except in 6.0.290", async () => {
      const chat = createChat();
      await chat.sendMessage({ text: "Go." });
      await chat.resumeStream();
      const isComplete = chat.status === "ready" && String(lastParts(chat)) === String(whole);
      expect(isComplete).toBe(version !== "6-floor");
    });

    test("a continuation after a reload completes at most a tool input", async () => {
      const cut = createChat();
      await cut.sendMessage({ text: "Go." });
      const chat = createChat(JSON.parse(JSON.stringify(cut.messages)));
      await chat.resumeStream();
      const isComplete = chat.status === "ready" && String(lastParts(chat)) === String(whole);
      expect(isComplete).toBe(survivesReload && version !== "6-floor");
    });
  });
});
