import type { Chunk, ResponseChunks } from "../src/testing/chunks.ts";
import {
  call,
  denial,
  failedTurn,
  gatedCall,
  output,
  STEP,
  STEP_END,
  serverCall,
  step,
  text,
  turn,
} from "../src/testing/chunks.ts";

/** An exchange whose last response may be interrupted after any chunk. */
export interface Story {
  readonly title: string;
  /** The responses to the user message and to the decisions, in order. */
  readonly turns: readonly ResponseChunks[];
  readonly only7?: boolean;
}

const FILE: Chunk = { type: "file", url: "https://page/a.png", mediaType: "image/png" };
const SOURCE: Chunk = {
  type: "source-url",
  sourceId: "s1",
  url: "https://page/",
  title: "A page",
};

const PREVIEW = [
  STEP,
  reasoning("Hm.", "r1"),
  text("I will", "t9"),
  { type: "reset-step" },
  reasoning("Hm.", "r1"),
].flat();

export const STORIES: readonly Story[] = [
  { title: "a text", turns: [turn(step(words("One two three four.")))] },
  {
    title: "reasoning, a server-side call, text, a file and a source",
    turns: [
      turn(
        step(reasoning("Hm, so."), streamedInput("c1"), serverCall("c1"), output("c1")),
        step(words("It is so."), FILE, SOURCE),
      ),
    ],
  },
  {
    title: "preliminary outputs and progress data",
    turns: [
      turn(
        step(serverCall("c1"), progress(1), output("c1", { preliminary: true, output: 1 })),
        [progress(2), output("c1", { preliminary: true, output: 2 }), progress(3)],
        [output("c1"), { type: "data-note", data: { note: "first" } }],
        step(text("Done."), { type: "data-note", data: { note: "second" } }),
      ),
    ],
  },
  {
    title: "two approval requests",
    turns: [turn(step(reasoning("Hm."), gatedCall("c1"), gatedCall("c2")))],
  },
  {
    title: "the response to an approval",
    turns: [turn(step(gatedCall("c1"))), turn(output("c1"), step(words("Paid, and well.")))],
  },
  {
    title: "the response to a denial after text",
    turns: [
      turn(step(text("First. ", "t1"), gatedCall("c1"))),
      turn(denial("c1"), step(words("Then not."))),
    ],
  },
  {
    title: "two approvals with deferred release",
    turns: [
      turn(step(gatedCall("c1"))),
      turn(step(reasoning("And now."), gatedCall("c2"))),
      turn(step(text("Both.", "t1"), words("Done.", "t2"), output("c1"), output("c2")), step()),
    ],
  },
  {
    title: "an approved client-side call",
    turns: [turn(step(gatedCall("c1", "locate"))), turn(call("c1", "locate"), step(words("Now.")))],
  },
  {
    title: "an error in the middle",
    turns: [failedTurn(...step(words("It was so")).slice(0, 4))],
  },
  {
    title: "a text that is reset for a call",
    turns: [turn(PREVIEW, gatedCall("c1"), STEP_END)],
    only7: true,
  },
  {
    title: "a text that is reset for the same text",
    turns: [turn(PREVIEW, text("I will", "t9"), STEP_END)],
    only7: true,
  },
];

function progress(done: number): Chunk {
  return { type: "data-progress", id: "p1", data: { done } };
}

function words(text: string, id = "t1"): Chunk[] {
  const deltas = text.split(/(?<= )/).map((delta) => ({ type: "text-delta", id, delta }));
  return [{ type: "text-start", id }, ...deltas, { type: "text-end", id }];
}

function reasoning(text: string, id = "r1"): Chunk[] {
  return words(text, id).map((chunk) => ({
    ...chunk,
    type: chunk.type.replace("text", "reasoning"),
  }));
}

function streamedInput(toolCallId: string): Chunk[] {
  const tool = { toolCallId, toolName: "lookup", providerExecuted: true };
  const delta = (inputTextDelta: string) => ({
    type: "tool-input-delta",
    toolCallId,
    inputTextDelta,
  });
  return [{ type: "tool-input-start", ...tool }, delta('{"a"'), delta(":1}")];
}
