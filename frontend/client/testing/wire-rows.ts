import type { Chunk, Response } from "./chunks.ts";
import {
  ANSWER,
  call,
  card,
  denial,
  failed,
  gate,
  output,
  outputError,
  request,
  STEP,
  serverCall,
  step,
  text,
  turn,
  waits,
} from "./chunks.ts";

/** What a person or the page does: approve or deny a call, or give the output of a page tool. */
export type Act = { readonly yes: string } | { readonly no: string } | { readonly give: string };

export interface Row {
  /** The promise of the server that the row leans on. */
  readonly promise: string;
  readonly shape: string;
  readonly responses: readonly Response[];
  readonly acts: readonly Act[];
  /** Posts after the first message and after each act. */
  readonly posts: readonly number[];
  /** The states of the tool calls at the end. */
  readonly states: readonly string[];
  /** Chunks that only AI SDK 7 knows. */
  readonly only7?: boolean;
}

const PROGRESS: Chunk = { type: "data-progress", data: { state: "done" }, transient: true };
const HELD = step(text("Done."), output("c1"), output("c2"));
const DONE = "output-available";
const locate = (id: string): Chunk => call(id, "locate");
const automatic = (id: string): Chunk[] => [
  { ...request(id), isAutomatic: true },
  { type: "tool-approval-response", approvalId: `approval-${id}`, approved: true },
];

/** What the server promises, each as a conversation with the posts that it takes. */
export const ROWS: readonly Row[] = [
  {
    promise: "T1",
    shape: "each turn of an exchange begins with the same id",
    responses: [turn(step(gate("c1"))), turn(step(gate("c2"))), turn(HELD)],
    acts: [{ yes: "approval-c1" }, { yes: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    promise: "T3",
    shape: "a turn that waits says so, and metadata comes with each end",
    responses: [waits(step(gate("c1"))), waits(step(gate("c2"))), turn(HELD)],
    acts: [{ no: "approval-c1" }, { yes: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    promise: "T10",
    shape: "the model fails after an approved call",
    responses: [turn(step(gate("c1"))), failed(output("c1"), STEP, ...text("It"))],
    acts: [{ yes: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    promise: "T4",
    shape: "both answers are met with an error chunk",
    responses: [turn(step(gate("c1"), gate("c2"))), failed()],
    acts: [{ yes: "approval-c1" }, { yes: "approval-c2" }],
    posts: [1, 1, 2],
    states: ["approval-responded", "approval-responded"],
  },
  {
    promise: "T4",
    shape: "nothing at all, for ever",
    responses: [turn(step(gate("c1"))), turn()],
    acts: [{ yes: "approval-c1" }],
    posts: [1, 2],
    states: ["approval-responded"],
  },
  {
    promise: "T4",
    shape: "a page tool whose output is answered with nothing",
    responses: [turn(step(locate("c1"))), turn()],
    acts: [{ give: "c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    promise: "T5",
    shape: "an empty step behind the last output",
    responses: [turn(step(gate("c1"))), turn(output("c1"), step())],
    acts: [{ yes: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    promise: "T7",
    shape: "server calls alone",
    responses: [
      turn(step(serverCall("c1"), output("c1")), step(serverCall("c2"), outputError("c2"))),
    ],
    acts: [],
    posts: [1],
    states: [DONE, "output-error"],
  },
  {
    promise: "T7",
    shape: "a gate that nobody foresaw keeps the mark",
    responses: [turn(step(serverCall("c1"), request("c1"))), turn(output("c1"), ANSWER)],
    acts: [{ yes: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    promise: "T8",
    shape: "approved and not run, denied, failed",
    responses: [
      turn(step(gate("c1"), gate("c2"), gate("c3"))),
      turn(outputError("c1"), denial("c2"), outputError("c3"), step()),
    ],
    acts: [{ yes: "approval-c1" }, { no: "approval-c2" }, { yes: "approval-c3" }],
    posts: [1, 1, 1, 2],
    states: ["output-error", "output-denied", "output-error"],
  },
  {
    promise: "T9",
    shape: "a page tool that asks is announced again once it may run",
    responses: [turn(step(gate("c1", "locate"))), turn(locate("c1")), turn(ANSWER)],
    acts: [{ yes: "approval-c1" }, { give: "c1" }],
    posts: [1, 2, 3],
    states: [DONE],
  },
  {
    promise: "T9",
    shape: "the same in the style confirmation",
    responses: [turn(step(card("a1"))), turn(locate("c1")), turn(output("a1"), ANSWER)],
    acts: [{ yes: "a1" }, { give: "c1" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    promise: "T2",
    shape: "agents that run at once ask in steps of their own",
    responses: [turn(step(gate("c1")), step(gate("c2"))), turn(HELD)],
    acts: [{ yes: "approval-c2" }, { yes: "approval-c1" }],
    posts: [1, 1, 2],
    states: [DONE, DONE],
  },
  {
    promise: "T2",
    shape: "one agent asks, and the other speaks in a later step",
    responses: [turn(step(gate("c1")), step(text("Meanwhile."))), turn(output("c1"), ANSWER)],
    acts: [{ yes: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    promise: "D1",
    shape: "reasoning, progress and steps before the next gate",
    responses: [turn(step(gate("c1"))), turn(PROGRESS, step(), step(gate("c2"))), turn(HELD)],
    acts: [{ yes: "approval-c1" }, { no: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    promise: "D2",
    shape: "free calls in a step before the gated and the page's",
    responses: [
      turn(step(serverCall("c1")), step(call("c2"), locate("c3"), request("c2"))),
      turn(step(text("Done."), output("c1"), output("c2"))),
    ],
    acts: [{ yes: "approval-c2" }, { give: "c3" }],
    posts: [1, 1, 2],
    states: [DONE, DONE, DONE],
  },
  {
    promise: "D2",
    shape: "an automatic approval as AI SDK 6 sees it, held in the step before",
    responses: [turn(step(call("c1")), step(gate("c2"))), turn(HELD)],
    acts: [{ yes: "approval-c2" }],
    posts: [1, 2],
    states: [DONE, DONE],
  },
  {
    promise: "D2",
    shape: "an automatic approval as AI SDK 7 sees it",
    responses: [
      turn(step(call("c1"), automatic("c1")), step(gate("c2"))),
      turn(step(text("Done."), output("c1"), output("c2"))),
    ],
    acts: [{ yes: "approval-c2" }],
    posts: [1, 2],
    states: [DONE, DONE],
    only7: true,
  },
  {
    promise: "D3",
    shape: "cards that close behind the results they stand for",
    responses: [
      turn(step(card("a1"))),
      turn(step(card("a2"))),
      turn(step(text("Done.")), step(call("c1"), output("c1"), output("a1"), denial("a2")), step()),
    ],
    acts: [{ yes: "a1" }, { no: "a2" }],
    posts: [1, 2, 3],
    states: [DONE, "output-denied", DONE],
  },
  {
    promise: "D4",
    shape: "a text that is taken back at the first sign of a tool",
    responses: [
      turn(step(gate("c1"))),
      turn(STEP, text("I will"), { type: "reset-step" }, gate("c2"), { type: "finish-step" }),
      turn(HELD),
    ],
    acts: [{ yes: "approval-c1" }, { yes: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
    only7: true,
  },
  {
    promise: "D6",
    shape: "a word on each held result, and nothing of the result",
    responses: [turn(step(serverCall("c1")), PROGRESS, step(gate("c2")), PROGRESS), turn(HELD)],
    acts: [{ yes: "approval-c2" }],
    posts: [1, 2],
    states: [DONE, DONE],
  },
  {
    promise: "D7",
    shape: "a stop ends the calls that were open",
    responses: [
      turn(step(gate("c1"), gate("c2"))),
      turn(output("c1"), denial("c2"), step(serverCall("c3"), outputError("c3")), step()),
    ],
    acts: [{ yes: "approval-c1" }, { no: "approval-c2" }],
    posts: [1, 1, 2],
    states: [DONE, "output-denied", "output-error"],
  },
  {
    promise: "D7",
    shape: "what was held is shown before the error",
    responses: [turn(step(gate("c1"))), turn(step(gate("c2"))), failed(output("c1"), denial("c2"))],
    acts: [{ yes: "approval-c1" }, { no: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, "output-denied"],
  },
  {
    promise: "progressive",
    shape: "texts and results as they come",
    responses: [
      turn(step(text("First."), gate("c1"))),
      turn(output("c1"), step(text("Then."), serverCall("c2"), output("c2")), step(gate("c3"))),
      turn(output("c3"), ANSWER),
    ],
    acts: [{ yes: "approval-c1" }, { yes: "approval-c3" }],
    posts: [1, 2, 3],
    states: [DONE, DONE, DONE],
  },
  {
    promise: "A5",
    shape: "a yes and a no that come too late",
    responses: [turn(step(gate("c1"), gate("c2"))), turn(outputError("c1"), denial("c2"), ANSWER)],
    acts: [{ yes: "approval-c1" }, { no: "approval-c2" }],
    posts: [1, 1, 2],
    states: ["output-error", "output-denied"],
  },
  {
    promise: "A6",
    shape: "the same call again, refused without a question",
    responses: [
      turn(step(gate("c1"))),
      turn(denial("c1"), step(call("c2"), outputError("c2")), ANSWER),
    ],
    acts: [{ no: "approval-c1" }],
    posts: [1, 2],
    states: ["output-denied", "output-error"],
  },
  {
    promise: "A3",
    shape: "approvals and page tools answered together, in any order",
    responses: [turn(step(locate("c1"), gate("c2"), locate("c3"))), turn(output("c2"), ANSWER)],
    acts: [{ give: "c3" }, { yes: "approval-c2" }, { give: "c1" }],
    posts: [1, 1, 1, 2],
    states: [DONE, DONE, DONE],
  },
];
