import type { Chunk, ResponseChunks } from "../src/testing/chunks.ts";
import {
  ANSWER,
  approvalRequest,
  call,
  confirmation,
  denial,
  failedTurn,
  gatedCall,
  output,
  outputError,
  STEP,
  serverCall,
  step,
  text,
  turn,
  waitingTurn,
} from "../src/testing/chunks.ts";

/** An action of the client: a decision on an approval, or the output of a client-side call. */
export type Action =
  | { readonly approve: string }
  | { readonly deny: string }
  | { readonly output: string };

export interface Row {
  /** The rule of the wire protocol that the row tests. */
  readonly rule: string;
  readonly shape: string;
  readonly responses: readonly ResponseChunks[];
  readonly actions: readonly Action[];
  /** The number of posts after the user message and after each action. */
  readonly posts: readonly number[];
  /** The states of the tool calls at the end. */
  readonly states: readonly string[];
  /** Whether the row uses chunks that only AI SDK 7 supports. */
  readonly only7?: boolean;
}

const PROGRESS: Chunk = { type: "data-progress", data: { state: "done" }, transient: true };
const HELD = step(text("Done."), output("c1"), output("c2"));
const DONE = "output-available";
const locate = (id: string): Chunk => call(id, "locate");
const automatic = (id: string): Chunk[] => [
  { ...approvalRequest(id), isAutomatic: true },
  { type: "tool-approval-response", approvalId: `approval-${id}`, approved: true },
];

/** The rules of the wire protocol, each as a conversation with its number of posts. */
export const ROWS: readonly Row[] = [
  {
    rule: "T1",
    shape: "each turn of an exchange has the same message id",
    responses: [turn(step(gatedCall("c1"))), turn(step(gatedCall("c2"))), turn(HELD)],
    actions: [{ approve: "approval-c1" }, { approve: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    rule: "T3",
    shape: "a waiting turn finishes with tool-calls, and each finish has metadata",
    responses: [waitingTurn(step(gatedCall("c1"))), waitingTurn(step(gatedCall("c2"))), turn(HELD)],
    actions: [{ deny: "approval-c1" }, { approve: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    rule: "T10",
    shape: "the model fails after an approved call",
    responses: [turn(step(gatedCall("c1"))), failedTurn(output("c1"), STEP, ...text("It"))],
    actions: [{ approve: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    rule: "T4",
    shape: "both decisions get an error chunk",
    responses: [turn(step(gatedCall("c1"), gatedCall("c2"))), failedTurn()],
    actions: [{ approve: "approval-c1" }, { approve: "approval-c2" }],
    posts: [1, 1, 2],
    states: ["approval-responded", "approval-responded"],
  },
  {
    rule: "T4",
    shape: "every further response is empty",
    responses: [turn(step(gatedCall("c1"))), turn()],
    actions: [{ approve: "approval-c1" }],
    posts: [1, 2],
    states: ["approval-responded"],
  },
  {
    rule: "T4",
    shape: "the output of a client-side tool gets an empty response",
    responses: [turn(step(locate("c1"))), turn()],
    actions: [{ output: "c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    rule: "T5",
    shape: "an empty step after the last output",
    responses: [turn(step(gatedCall("c1"))), turn(output("c1"), step())],
    actions: [{ approve: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    rule: "T7",
    shape: "server-side calls only",
    responses: [
      turn(step(serverCall("c1"), output("c1")), step(serverCall("c2"), outputError("c2"))),
    ],
    actions: [],
    posts: [1],
    states: [DONE, "output-error"],
  },
  {
    rule: "T7",
    shape: "an unannounced gated call keeps the mark",
    responses: [turn(step(serverCall("c1"), approvalRequest("c1"))), turn(output("c1"), ANSWER)],
    actions: [{ approve: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    rule: "T8",
    shape: "approved and not run, denied, failed",
    responses: [
      turn(step(gatedCall("c1"), gatedCall("c2"), gatedCall("c3"))),
      turn(outputError("c1"), denial("c2"), outputError("c3"), step()),
    ],
    actions: [{ approve: "approval-c1" }, { deny: "approval-c2" }, { approve: "approval-c3" }],
    posts: [1, 1, 1, 2],
    states: ["output-error", "output-denied", "output-error"],
  },
  {
    rule: "T9",
    shape: "a gated client-side call is announced again after its approval",
    responses: [turn(step(gatedCall("c1", "locate"))), turn(locate("c1")), turn(ANSWER)],
    actions: [{ approve: "approval-c1" }, { output: "c1" }],
    posts: [1, 2, 3],
    states: [DONE],
  },
  {
    rule: "T9",
    shape: "the same in the style confirmation",
    responses: [turn(step(confirmation("a1"))), turn(locate("c1")), turn(output("a1"), ANSWER)],
    actions: [{ approve: "a1" }, { output: "c1" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    rule: "T2",
    shape: "parallel agents request approvals in separate steps",
    responses: [turn(step(gatedCall("c1")), step(gatedCall("c2"))), turn(HELD)],
    actions: [{ approve: "approval-c2" }, { approve: "approval-c1" }],
    posts: [1, 1, 2],
    states: [DONE, DONE],
  },
  {
    rule: "T2",
    shape: "one agent requests an approval, another one writes text in a later step",
    responses: [turn(step(gatedCall("c1")), step(text("Meanwhile."))), turn(output("c1"), ANSWER)],
    actions: [{ approve: "approval-c1" }],
    posts: [1, 2],
    states: [DONE],
  },
  {
    rule: "D1",
    shape: "progress and steps before the next approval request",
    responses: [
      turn(step(gatedCall("c1"))),
      turn(PROGRESS, step(), step(gatedCall("c2"))),
      turn(HELD),
    ],
    actions: [{ approve: "approval-c1" }, { deny: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
  },
  {
    rule: "D2",
    shape: "ungated calls in a step before gated and client-side calls",
    responses: [
      turn(step(serverCall("c1")), step(call("c2"), locate("c3"), approvalRequest("c2"))),
      turn(step(text("Done."), output("c1"), output("c2"))),
    ],
    actions: [{ approve: "approval-c2" }, { output: "c3" }],
    posts: [1, 1, 2],
    states: [DONE, DONE, DONE],
  },
  {
    rule: "D2",
    shape: "an automatic approval for AI SDK 6, held in the previous step",
    responses: [turn(step(call("c1")), step(gatedCall("c2"))), turn(HELD)],
    actions: [{ approve: "approval-c2" }],
    posts: [1, 2],
    states: [DONE, DONE],
  },
  {
    rule: "D2",
    shape: "an automatic approval for AI SDK 7",
    responses: [
      turn(step(call("c1"), automatic("c1")), step(gatedCall("c2"))),
      turn(step(text("Done."), output("c1"), output("c2"))),
    ],
    actions: [{ approve: "approval-c2" }],
    posts: [1, 2],
    states: [DONE, DONE],
    only7: true,
  },
  {
    rule: "D3",
    shape: "confirmations are closed after the results of their calls",
    responses: [
      turn(step(confirmation("a1"))),
      turn(step(confirmation("a2"))),
      turn(step(text("Done.")), step(call("c1"), output("c1"), output("a1"), denial("a2")), step()),
    ],
    actions: [{ approve: "a1" }, { deny: "a2" }],
    posts: [1, 2, 3],
    states: [DONE, "output-denied", DONE],
  },
  {
    rule: "D4",
    shape: "a text that is reset when a tool call begins",
    responses: [
      turn(step(gatedCall("c1"))),
      turn(STEP, text("I will"), { type: "reset-step" }, gatedCall("c2"), { type: "finish-step" }),
      turn(HELD),
    ],
    actions: [{ approve: "approval-c1" }, { approve: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, DONE],
    only7: true,
  },
  {
    rule: "D6",
    shape: "progress for each held result, without the result",
    responses: [
      turn(step(serverCall("c1")), PROGRESS, step(gatedCall("c2")), PROGRESS),
      turn(HELD),
    ],
    actions: [{ approve: "approval-c2" }],
    posts: [1, 2],
    states: [DONE, DONE],
  },
  {
    rule: "D7",
    shape: "a stop ends the open calls",
    responses: [
      turn(step(gatedCall("c1"), gatedCall("c2"))),
      turn(output("c1"), denial("c2"), step(serverCall("c3"), outputError("c3")), step()),
    ],
    actions: [{ approve: "approval-c1" }, { deny: "approval-c2" }],
    posts: [1, 1, 2],
    states: [DONE, "output-denied", "output-error"],
  },
  {
    rule: "D7",
    shape: "held outcomes are released before the error",
    responses: [
      turn(step(gatedCall("c1"))),
      turn(step(gatedCall("c2"))),
      failedTurn(output("c1"), denial("c2")),
    ],
    actions: [{ approve: "approval-c1" }, { deny: "approval-c2" }],
    posts: [1, 2, 3],
    states: [DONE, "output-denied"],
  },
  {
    rule: "progressive",
    shape: "text and results as they are produced",
    responses: [
      turn(step(text("First."), gatedCall("c1"))),
      turn(
        output("c1"),
        step(text("Then."), serverCall("c2"), output("c2")),
        step(gatedCall("c3")),
      ),
      turn(output("c3"), ANSWER),
    ],
    actions: [{ approve: "approval-c1" }, { approve: "approval-c3" }],
    posts: [1, 2, 3],
    states: [DONE, DONE, DONE],
  },
  {
    rule: "A5",
    shape: "an approval and a denial after the deadline",
    responses: [
      turn(step(gatedCall("c1"), gatedCall("c2"))),
      turn(outputError("c1"), denial("c2"), ANSWER),
    ],
    actions: [{ approve: "approval-c1" }, { deny: "approval-c2" }],
    posts: [1, 1, 2],
    states: ["output-error", "output-denied"],
  },
  {
    rule: "A6",
    shape: "a denied call again, refused without an approval request",
    responses: [
      turn(step(gatedCall("c1"))),
      turn(denial("c1"), step(call("c2"), outputError("c2")), ANSWER),
    ],
    actions: [{ deny: "approval-c1" }],
    posts: [1, 2],
    states: ["output-denied", "output-error"],
  },
  {
    rule: "A3",
    shape: "decisions and client-side outputs together, in any order",
    responses: [
      turn(step(locate("c1"), gatedCall("c2"), locate("c3"))),
      turn(output("c2"), ANSWER),
    ],
    actions: [{ output: "c3" }, { approve: "approval-c2" }, { output: "c1" }],
    posts: [1, 1, 1, 2],
    states: [DONE, DONE, DONE],
  },
];
