import type { Chunk, Response } from "./chunks.ts";
import {
  call,
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
} from "./chunks.ts";

/** An exchange whose last response may be cut anywhere. */
export interface Story {
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

export const STORIES: readonly Story[] = [
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
    title: "a call of the page that may run now",
    turns: [turn(step(gate("c1", "locate"))), turn(call("c1", "locate"), step(spoken("Now.")))],
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
