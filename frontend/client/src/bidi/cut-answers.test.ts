import { describe, expect, test } from "vitest";
import {
  denial,
  failed,
  gate,
  output,
  STEP,
  STEP_END,
  serverCall,
  step,
  text,
  turn,
} from "../../testing/chunks.ts";
import { FakeSockets } from "../../testing/fake-sockets.ts";
import { type Chunk, type Response, VERSIONS, type Version } from "../../testing/scripted-chat.ts";
import { chatOver, majorOf, rest } from "../../testing/told-chat.ts";
import type { ChatMessage } from "../messages.ts";
import { sendAutomaticallyWhen } from "../send-automatically.ts";
import type { StoredChat } from "../stored-chat.ts";

interface Story {
  readonly title: string;
  /** The responses to the user's message and to the answers, in order. */
  readonly turns: readonly Response[];
  readonly only7?: boolean;
}

const PREVIEW = [
  STEP,
  thought("Hm.", "r1"),
  text("I will", "t9"),
  { type: "reset-step" },
  thought("Hm.", "r1"),
].flat();

const STORIES: readonly Story[] = [
  { title: "a text", turns: [turn(step(spoken("One two three four.")))] },
  {
    title: "thoughts, a server's call, text, a file and a source",
    turns: [
      turn(
        step(thought("Hm, so."), typed("c1"), serverCall("c1"), output("c1")),
        step(spoken("It is so."), FILE(), SOURCE()),
      ),
    ],
  },
  {
    title: "progress of a call and of the whole",
    turns: [
      turn(
        step(serverCall("c1"), progress(1), output("c1", { preliminary: true, output: 1 })),
        [progress(2), output("c1", { preliminary: true, output: 2 }), progress(3)],
        [output("c1"), { type: "data-note", data: { told: "once" } }],
        step(text("Done."), { type: "data-note", data: { told: "twice" } }),
      ),
    ],
  },
  { title: "a request", turns: [turn(step(thought("Hm."), gate("c1"), gate("c2")))] },
  {
    title: "what follows an approval",
    turns: [turn(step(gate("c1"))), turn(output("c1"), step(spoken("Paid, and well.")))],
  },
  {
    title: "what follows a denial and text before it",
    turns: [
      turn(step(text("First. ", "t1"), gate("c1"))),
      turn(denial("c1"), step(spoken("Then not."))),
    ],
  },
  {
    title: "two approvals with all held to the end",
    turns: [
      turn(step(gate("c1"))),
      turn(step(thought("And now."), gate("c2"))),
      turn(step(text("Both.", "t1"), spoken("Done.", "t2"), output("c1"), output("c2")), step()),
    ],
  },
  {
    title: "an error in the middle",
    turns: [failed(...step(spoken("It was so")).slice(0, 4))],
  },
  {
    title: "a text that is taken back for a call",
    turns: [turn(PREVIEW, gate("c1"), STEP_END)],
    only7: true,
  },
  {
    title: "a text that is taken back for the same text",
    turns: [turn(PREVIEW, text("I will", "t9"), STEP_END)],
    only7: true,
  },
];

function FILE(): Chunk {
  return { type: "file", url: "https://page/a.png", mediaType: "image/png" };
}

function SOURCE(): Chunk {
  return { type: "source-url", sourceId: "s1", url: "https://page/", title: "A page" };
}

function progress(done: number): Chunk {
  return { type: "data-progress", id: "p1", data: { done } };
}

function spoken(words: string, id = "t1"): Chunk[] {
  const deltas = words.split(/(?<= )/).map((delta) => ({ type: "text-delta", id, delta }));
  return [{ type: "text-start", id }, ...deltas, { type: "text-end", id }];
}

function thought(words: string, id = "r1"): Chunk[] {
  return spoken(words, id).map((chunk) => ({
    ...chunk,
    type: chunk.type.replace("text", "reasoning"),
  }));
}

function typed(toolCallId: string): Chunk[] {
  const tool = { toolCallId, toolName: "lookup", providerExecuted: true };
  const delta = (inputTextDelta: string) => ({
    type: "tool-input-delta",
    toolCallId,
    inputTextDelta,
  });
  return [{ type: "tool-input-start", ...tool }, delta('{"a"'), delta(":1}")];
}

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
      for (let after = 1; after < length; after += 1) {
        const ended = await tell(story, version, { after, found: "over", uncut });
        expect(ended, `cut after ${after}`).toEqual(uncut);
      }
    },
  );
});
