import { describe, expect, test } from "vitest";
import { VERSIONS, type Version } from "../../testing/ai-sdk-versions.ts";
import { createBidiChat, majorOf } from "../../testing/bidi-chat.ts";
import { STORIES, type Story } from "../../testing/interrupted-stories.ts";
import { whenIdle } from "../../testing/when-idle.ts";
import type { StoredChat } from "../chat-api.ts";
import type { ChatMessage } from "../message-parts.ts";
import { sendAutomaticallyWhen } from "../send-automatically.ts";
import type { Chunk, ResponseChunks } from "../testing/chunks.ts";
import { ScriptedSockets } from "../testing/scripted-sockets.ts";

/** The replay of the whole message: with decisions for 7, without decided approvals for 6. */
function replayOf(turns: readonly ResponseChunks[], version: Version): Chunk[] {
  const is7 = majorOf(version) === 7;
  const last = turns.length - 1;
  const chunks = turns.flatMap((chunks, index) =>
    chunks
      .filter(({ type }) => type !== "start" && (index === last || type !== "finish"))
      .flatMap((chunk) => {
        if (chunk.type !== "tool-approval-request" || index === last) return [chunk];
        const { approvalId } = chunk;
        return is7 ? [chunk, { type: "tool-approval-response", approvalId, approved: true }] : [];
      }),
  );
  return [{ type: "start", messageId: "m1" }, ...chunks];
}

/** The same chunks with one delta per text, as rebuilt from the session log. */
function mergeDeltas(chunks: readonly Chunk[]): Chunk[] {
  const out: Chunk[] = [];
  for (const chunk of chunks) {
    const before = out.at(-1);
    if (/^(text|reasoning)-delta$/.test(chunk.type) && before?.type === chunk.type) {
      out[out.length - 1] = { ...before, delta: `${before.delta}${chunk.delta}` };
    } else out.push(chunk);
  }
  return out;
}

interface Outcome {
  readonly messages: readonly ChatMessage[];
  readonly status: string;
  readonly sends: number;
}

/** The state of the turn on reconnection. */
type Reconnection = "running" | "rebuilt" | "ended" | "interrupted twice";

/** Play a story whose last response is interrupted after a number of chunks. */
async function play(
  story: Story,
  version: Version,
  interruption: { after: number; turn: Reconnection; uninterrupted: Outcome } | undefined,
): Promise<Outcome> {
  const sockets = new ScriptedSockets();
  const { turns } = story;
  const last = turns.length - 1;
  let sends = 0;
  let interruptions = 0;
  sockets.onFrame = (socket, { type, requestId }) => {
    const isSend = type === "send";
    const at = isSend ? sends : last;
    if (isSend) sends += 1;
    const replay = replayOf(turns, version);
    const chunks = isSend ? (turns[Math.min(at, last)] ?? []) : replay;
    if (type === "abort") return;
    if (!isSend && (interruption?.turn === "ended" || interruption === undefined)) {
      socket.emitFrame({ type: "no-active", requestId });
      return;
    }
    if (!isSend) socket.emitFrame({ type: "start", requestId });
    const isInterrupted =
      interruption !== undefined &&
      at === last &&
      interruptions < (interruption.turn === "interrupted twice" ? 2 : 1);
    if (isInterrupted && (isSend || interruptions > 0)) {
      interruptions += 1;
      socket.emitChunks(
        requestId,
        chunks.slice(0, isSend ? interruption.after : chunks.length - 2),
      );
      socket.emitClose(interruptions === 1 ? 1006 : 1012);
      return;
    }
    socket.emitChunks(
      requestId,
      interruption?.turn === "rebuilt" && !isSend ? mergeDeltas(chunks) : chunks,
    );
    socket.emitFrame({ type: "end", requestId });
  };
  const loadChat = async (): Promise<StoredChat<unknown>> => ({
    id: "chat",
    title: "",
    status: "ready",
    messages: structuredClone(interruption?.uninterrupted.messages ?? []) as unknown[],
  });
  const { chat } = createBidiChat(sockets, version, {
    loadChat,
    sendAutomaticallyWhen: sendAutomaticallyWhen(),
    generateId: () => "u1",
  });
  await chat.sendMessage({ text: "Go." });
  await whenIdle(chat);
  for (let left = last; left > 0; left -= 1) {
    const pending = chat.messages.at(-1)?.parts.find(({ state }) => state === "approval-requested");
    await chat.addToolApprovalResponse({ id: pending?.approval?.id ?? "", approved: true });
    await whenIdle(chat);
  }
  const messages = JSON.parse(JSON.stringify(chat.messages)) as ChatMessage[];
  return { messages, status: chat.status, sends };
}

describe.each(VERSIONS)("a client of ai %s", (version) => {
  const stories = STORIES.filter(({ only7 }) => only7 !== true || majorOf(version) === 7);

  test.each(stories)(
    "ends with the message of an uninterrupted connection: $title",
    async (story) => {
      const uninterrupted = await play(story, version, undefined);
      const { length } = story.turns.at(-1) ?? [];
      for (let after = 0; after <= length; after += 1) {
        for (const turn of ["running", "rebuilt", "interrupted twice"] as const) {
          const ended = await play(story, version, { after, turn, uninterrupted });
          expect(ended, `interrupted after ${after}, then ${turn}`).toEqual(uninterrupted);
        }
      }
    },
  );

  test.each(stories.filter(({ title }) => !title.includes("error")))(
    "ends with the stored message: $title",
    async (story) => {
      const uninterrupted = await play(story, version, undefined);
      const { length } = story.turns.at(-1) ?? [];
      for (let after = 0; after < length; after += 1) {
        const ended = await play(story, version, { after, turn: "ended", uninterrupted });
        // Without any chunk it is unknown whether the request arrived, so it is sent again.
        const sends = uninterrupted.sends + Number(after === 0);
        expect(ended, `interrupted after ${after}`).toEqual({ ...uninterrupted, sends });
      }
    },
  );
});
