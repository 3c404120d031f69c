import { describe, expect, test } from "vitest";
import type { Chunk, Response } from "../../testing/chunks.ts";
import { STORIES, type Story } from "../../testing/cut-stories.ts";
import { FakeSockets } from "../../testing/fake-sockets.ts";
import { VERSIONS, type Version } from "../../testing/scripted-chat.ts";
import { chatOver, majorOf, rest } from "../../testing/told-chat.ts";
import type { ChatMessage } from "../messages.ts";
import { sendAutomaticallyWhen } from "../send-automatically.ts";
import type { StoredChat } from "../stored-chat.ts";

/** The whole message, as a resume tells it: decisions for 7 alone, for 6 without their requests. */
function toldAgain(turns: readonly Response[], version: Version): Chunk[] {
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

/** The same with each block in one delta, as from a log. */
function merged(chunks: readonly Chunk[]): Chunk[] {
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

type Reconnected = "running" | "rebuilt" | "over" | "cut twice";

/** Tell a story; the last response is cut after so many chunks, and found again in some way. */
async function tell(
  story: Story,
  version: Version,
  cut: { after: number; found: Reconnected; uncut: Outcome } | undefined,
): Promise<Outcome> {
  const sockets = new FakeSockets();
  const { turns } = story;
  const last = turns.length - 1;
  let sends = 0;
  let cuts = 0;
  sockets.heard = (socket, { type, requestId }) => {
    const isSend = type === "send";
    const at = isSend ? sends : last;
    if (isSend) sends += 1;
    const whole = toldAgain(turns, version);
    const chunks = isSend ? (turns[Math.min(at, last)] ?? []) : whole;
    if (type === "abort") return;
    if (!isSend && (cut?.found === "over" || cut === undefined)) {
      socket.say({ type: "no-active", requestId });
      return;
    }
    if (!isSend) socket.say({ type: "start", requestId });
    const isCut = cut !== undefined && at === last && cuts < (cut.found === "cut twice" ? 2 : 1);
    if (isCut && (isSend || cuts > 0)) {
      cuts += 1;
      socket.chunks(requestId, chunks.slice(0, isSend ? cut.after : chunks.length - 2));
      socket.end(cuts === 1 ? 1006 : 1012);
      return;
    }
    socket.chunks(requestId, cut?.found === "rebuilt" && !isSend ? merged(chunks) : chunks);
    socket.say({ type: "end", requestId });
  };
  const stored = async (): Promise<StoredChat<unknown>> => ({
    id: "chat",
    title: "",
    status: "ready",
    messages: structuredClone(cut?.uncut.messages ?? []) as unknown[],
  });
  const { chat } = chatOver(sockets, version, {
    stored,
    sendAutomaticallyWhen: sendAutomaticallyWhen(),
    generateId: () => "u1",
  });
  await chat.sendMessage({ text: "Go." });
  await rest(chat);
  for (let left = last; left > 0; left -= 1) {
    const asking = chat.messages.at(-1)?.parts.find(({ state }) => state === "approval-requested");
    await chat.addToolApprovalResponse({ id: asking?.approval?.id ?? "", approved: true });
    await rest(chat);
  }
  const messages = JSON.parse(JSON.stringify(chat.messages)) as ChatMessage[];
  return { messages, status: chat.status, sends };
}

describe.each(VERSIONS)("a client of ai %s", (version) => {
  const stories = STORIES.filter(({ only7 }) => only7 !== true || majorOf(version) === 7);

  test.each(stories)("ends with the message of an unbroken connection: $title", async (story) => {
    const uncut = await tell(story, version, undefined);
    const { length } = story.turns.at(-1) ?? [];
    for (let after = 0; after <= length; after += 1) {
      for (const found of ["running", "rebuilt", "cut twice"] as const) {
        const ended = await tell(story, version, { after, found, uncut });
        expect(ended, `cut after ${after}, then ${found}`).toEqual(uncut);
      }
    }
  });

  test.each(stories.filter(({ title }) => !title.includes("error")))(
    "ends with the message as it is stored: $title",
    async (story) => {
      const uncut = await tell(story, version, undefined);
      const { length } = story.turns.at(-1) ?? [];
      for (let after = 0; after < length; after += 1) {
        const ended = await tell(story, version, { after, found: "over", uncut });
        // Of what never came back it is not known whether it arrived, so it is sent once more.
        const sends = uncut.sends + Number(after === 0);
        expect(ended, `cut after ${after}`).toEqual({ ...uncut, sends });
      }
    },
  );
});
