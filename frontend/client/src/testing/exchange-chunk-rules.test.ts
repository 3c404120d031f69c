import { describe, expect, test } from "vitest";
import type { ChatMessage, MessagePart } from "../message-parts.ts";
import {
  approvalRequest,
  type Chunk,
  call,
  failedTurn,
  gatedCall,
  output,
  progressDone,
  STEP,
  STEP_END,
  serverCall,
  step,
  text,
  turn,
  waitingTurn,
} from "./chunks.ts";
import { type Release, ruleFaults } from "./exchange-chunk-rules.ts";

const SECRET = "secret-8731";

type Turns = readonly (readonly Chunk[])[];

const FINAL = turn(STEP, text("Done."), output("c1"), STEP_END);
const RELEASED = turn(progressDone("c1"), STEP, text("Done."), output("c1"), STEP_END);
const GATED = waitingTurn(step(gatedCall("c1", "pay")));
const STEPS: MessagePart[] = [{ type: "step-start" }, { type: "text", state: "done" }];
const INPUT = { originalFunctionCall: { id: "c1", name: "pay", args: {} } };
const CONFIRMATION = call("a1", "adk_request_confirmation", { input: INPUT });
const CONFIRMATION_AGAIN = { ...CONFIRMATION, providerExecuted: true };

function faults(
  turns: Turns,
  release: Release = "deferred",
  parts: readonly MessagePart[] = STEPS,
) {
  const message: ChatMessage = { id: "m1", role: "assistant", parts };
  return ruleFaults({
    turns,
    release,
    message,
    clientTools: new Set(["locate"]),
    secrets: [SECRET],
  });
}

describe("a valid exchange has no faults", () => {
  const natural = [
    waitingTurn(STEP, text("First."), serverCall("c0", "lookup"), call("c1", "pay"), [
      output("c0"),
      approvalRequest("c1"),
      STEP_END,
    ]),
    turn(output("c1"), STEP, text("Done."), STEP_END),
  ];
  const previewed = waitingTurn(
    STEP,
    text("First."),
    { type: "reset-step" },
    call("c1", "pay"),
    approvalRequest("c1"),
    STEP_END,
  );
  const rows: [string, Turns, Release][] = [
    ["deferred", [GATED, RELEASED], "deferred"],
    ["in natural order", natural, "progressive"],
    [
      "of two agents at once, the other of which is faster",
      lateOutcome(["cashier", "guide"], "guide"),
      "progressive",
    ],
    ["previewed and reset", [previewed, RELEASED], "preview"],
    [
      "announcing a decided confirmation again",
      [
        waitingTurn(STEP, CONFIRMATION, approvalRequest("a1"), STEP_END),
        waitingTurn(CONFIRMATION_AGAIN, step(gatedCall("c2", "pay"))),
        turn(progressDone("c1"), STEP, text("Done."), STEP_END, STEP, call("c1", "pay"), [
          output("c1"),
          { ...output("a1"), output: { confirmed: true } },
          STEP_END,
        ]),
      ],
      "deferred",
    ],
    [
      "announcing a client-side call again",
      [
        waitingTurn(step(gatedCall("c1", "locate"))),
        waitingTurn(call("c1", "locate")),
        turn(STEP, text("Done."), output("c1"), STEP_END),
      ],
      "deferred",
    ],
    ["ended by an error", [GATED, failedTurn()], "deferred"],
  ];
  test.each(rows)("%s", (_, turns, release) => {
    expect(faults(turns, release)).toEqual([]);
  });
});

describe("a violated rule is reported", () => {
  const rows: [string, Turns, Release?, MessagePart[]?][] = [
    ["T1: begins with", [FINAL.slice(1)]],
    ["T1: 2 starts", [[...FINAL.slice(0, 1), ...FINAL]]],
    ["T1: message ids", [GATED, [{ type: "start", messageId: "m2" }, ...FINAL.slice(1)]]],
    ["T2: text-start outside a step", [turn(text("Done."))]],
    ["T2: text t1 open", [turn(STEP, text("Done.").slice(0, 2), STEP_END)]],
    ["T2: finish inside a step", [turn(STEP, text("Done."))]],
    ["T3: ends with finish-step", [FINAL.slice(0, -1)]],
    ["T3: 1 finishes and 1 errors", [[...FINAL, { type: "error", errorText: "It failed." }]]],
    ["T3: finishReason", [withReason("STOP", turn(STEP, text("Done."), STEP_END))]],
    ["T3: finish without usage", [[...FINAL.slice(0, -1), finishWithoutMetadata("stop")]]],
    ["T3: createdAt", [GATED, withMetadata(FINAL, { createdAt: "2026-01-02T00:00:00Z" })]],
    ["T3: total tokens", [withMetadata(GATED, { usage: { totalTokens: 9 } }), FINAL]],
    ["T4: turn 2 changes nothing", [GATED, turn()]],
    ["T5: tool-lookup", [FINAL], "deferred", [...STEPS, completed("lookup")]],
    ["T7: lookup is not marked", [turn(STEP, call("c0", "lookup"), output("c0"), STEP_END)]],
    [
      "T7: pay is marked",
      [waitingTurn(STEP, serverCall("c1", "pay"), approvalRequest("c1"), STEP_END)],
    ],
    ["T7: locate is marked", [waitingTurn(STEP, serverCall("c1", "locate"), STEP_END)]],
    ["T9: c1 is announced again", [GATED, waitingTurn(step(gatedCall("c1", "pay")))]],
    [
      "T9: c1 is announced again",
      [
        waitingTurn(step(gatedCall("c1", "locate"))),
        waitingTurn(STEP, call("c1", "locate"), STEP_END),
      ],
    ],
    [
      "T9: a1 is announced again",
      [
        waitingTurn(STEP, CONFIRMATION, approvalRequest("a1"), STEP_END, STEP, STEP_END),
        waitingTurn(CONFIRMATION_AGAIN, step(gatedCall("c2", "pay"))),
      ],
    ],
    [
      "T7: adk_request_confirmation is marked",
      [waitingTurn(STEP, CONFIRMATION_AGAIN, approvalRequest("a1"), STEP_END)],
    ],
    ["T9: tool-output-available for the unknown", [turn(STEP, output("c7"), STEP_END)]],
    ["T10: the error has no text", [[{ type: "start", messageId: "m1" }, { type: "error" }]]],
    [
      "T8, T10: error contains",
      [
        [
          { type: "start", messageId: "m1" },
          { type: "error", errorText: `No: ${SECRET}` },
        ],
      ],
    ],
    ["D1: turn 1 has text-start", [waitingTurn(STEP, text("First."), STEP_END)]],
    ["D1: turn 2 has tool-output-available", [GATED, waitingTurn(output("c1")), FINAL]],
    ["D1: turn 1 has text-end", [waitingTurn(STEP, text("First."), STEP_END), FINAL], "preview"],
    [
      "D2: turn 1 announces lookup",
      [
        waitingTurn(
          STEP,
          serverCall("c0", "lookup"),
          call("c1", "pay"),
          approvalRequest("c1"),
          STEP_END,
        ),
      ],
    ],
    ["D3: turn 2 has text after", [GATED, turn(STEP, output("c1"), text("Done."), STEP_END)]],
    ["D4: turn 1 resets", [turn(STEP, { type: "reset-step" }, STEP_END)]],
    ["D6: the result of c1", [GATED, FINAL]],
    [
      "progressive: turn 2",
      [GATED, turn(STEP, text("Done."), STEP_END, output("c1"))],
      "progressive",
    ],
    ["progressive: turn 2", lateOutcome(["cashier"], "cashier"), "progressive"],
    ["progressive: turn 2", lateOutcome(["cashier", "guide"], "cashier"), "progressive"],
    // An agent that did not wait has been handed the answer, and speaks after the outcome.
    ["progressive: turn 2", lateOutcome(["cashier"], "guide"), "progressive"],
  ];
  test.each(rows)("%s", (fault, turns, release, parts) => {
    expect(faults(turns, release, parts).join("\n")).toContain(fault);
  });
});

/** The cashier and perhaps the guide wait; the outcome of the cashier's call comes after a step. */
function lateOutcome(waiting: readonly string[], speaking: string): Turns {
  const named = (name: string): Chunk => ({ type: "data-agent", data: { name }, transient: true });
  const asked = waiting.map((name, index) =>
    step(gatedCall(`c${index + 1}`, "pay")).map((chunk) =>
      chunk.type === "tool-input-available"
        ? { ...chunk, toolMetadata: { agent: `together/${name}` } }
        : chunk,
    ),
  );
  const outputs = waiting.map((_, index) => output(`c${index + 1}`));
  return [
    waitingTurn(named("cashier"), ...asked),
    turn(named(speaking), outputs.slice(1), STEP, text("Done."), outputs.slice(0, 1), STEP_END),
  ];
}

function withMetadata(chunks: readonly Chunk[], metadata: object): Chunk[] {
  const finish = chunks.at(-1) ?? finishWithoutMetadata("stop");
  const messageMetadata = { ...(finish.messageMetadata as object), ...metadata };
  return [...chunks.slice(0, -1), { ...finish, messageMetadata }];
}

function withReason(finishReason: string, chunks: readonly Chunk[]): Chunk[] {
  return [...chunks.slice(0, -1), { ...chunks.at(-1), type: "finish", finishReason }];
}

function finishWithoutMetadata(finishReason: string): Chunk {
  return { type: "finish", finishReason };
}

function completed(tool: string): MessagePart {
  return { type: `tool-${tool}`, toolCallId: "c0", state: "output-available" };
}
