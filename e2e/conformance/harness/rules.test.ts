import { describe, expect, test } from "vitest";
import type { Message, Part } from "./messages.ts";
import { type Release, ruleFaults, SECRET } from "./rules.ts";
import {
  approvalRequest,
  call,
  failedTurn,
  gatedStep,
  output,
  progressDone,
  STEP,
  STEP_END,
  text,
  turn,
  ungatedCall,
} from "./scripted-responses.ts";
import type { Chunk } from "./sse-parser.ts";

type Turns = readonly (readonly Chunk[])[];

const FINAL = turn("stop", STEP, text("Done."), output("c1"), STEP_END);
const RELEASED = turn("stop", progressDone("c1"), STEP, text("Done."), output("c1"), STEP_END);
const GATED = turn("tool-calls", gatedStep("c1", "pay"));
const STEPS: Part[] = [{ type: "step-start" }, { type: "text", text: "Done.", state: "done" }];

function faults(turns: Turns, release: Release = "deferred", parts: readonly Part[] = STEPS) {
  const message: Message = { id: "m1", role: "assistant", parts };
  return ruleFaults({ turns, release, message, clientTools: new Set(["locate"]) });
}

describe("a valid exchange has no faults", () => {
  const natural = [
    turn("tool-calls", STEP, text("First."), ungatedCall("c0", "lookup"), call("c1", "pay"), [
      output("c0"),
      approvalRequest("c1"),
      STEP_END,
    ]),
    turn("stop", output("c1"), STEP, text("Done."), STEP_END),
  ];
  const previewed = turn(
    "tool-calls",
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
    ["previewed and reset", [previewed, RELEASED], "preview"],
    [
      "announcing a client-side call again",
      [
        turn("tool-calls", gatedStep("c1", "locate")),
        turn("tool-calls", call("c1", "locate")),
        turn("stop", STEP, text("Done."), output("c1"), STEP_END),
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
  const rows: [string, Turns, Release?, Part[]?][] = [
    ["T1: begins with", [FINAL.slice(1)]],
    ["T1: 2 starts", [[...FINAL.slice(0, 1), ...FINAL]]],
    ["T1: message ids", [GATED, [{ type: "start", messageId: "m2" }, ...FINAL.slice(1)]]],
    ["T2: text-start outside a step", [turn("stop", text("Done."))]],
    ["T2: text t1 open", [turn("stop", STEP, text("Done.").slice(0, 2), STEP_END)]],
    ["T2: finish inside a step", [turn("stop", STEP, text("Done."))]],
    ["T3: ends with finish-step", [FINAL.slice(0, -1)]],
    ["T3: 1 finishes and 1 errors", [[...FINAL, { type: "error", errorText: "It failed." }]]],
    ["T3: finishReason", [turn("STOP", STEP, text("Done."), STEP_END)]],
    ["T3: finish without usage", [[...FINAL.slice(0, -1), finishWithoutMetadata("stop")]]],
    ["T3: createdAt", [GATED, withMetadata(FINAL, { createdAt: "2026-01-02T00:00:00Z" })]],
    ["T3: total tokens", [withMetadata(GATED, { usage: { totalTokens: 9 } }), FINAL]],
    ["T4: turn 2 changes nothing", [GATED, turn("stop")]],
    ["T5: tool-lookup", [FINAL], "deferred", [...STEPS, completed("lookup")]],
    [
      "T7: lookup is not marked",
      [turn("stop", STEP, call("c0", "lookup"), output("c0"), STEP_END)],
    ],
    [
      "T7: pay is marked",
      [turn("tool-calls", STEP, ungatedCall("c1", "pay"), approvalRequest("c1"), STEP_END)],
    ],
    ["T7: locate is marked", [turn("tool-calls", STEP, ungatedCall("c1", "locate"), STEP_END)]],
    ["T9: c1 is announced again", [GATED, turn("tool-calls", gatedStep("c1", "pay"))]],
    [
      "T9: c1 is announced again",
      [
        turn("tool-calls", gatedStep("c1", "locate")),
        turn("tool-calls", STEP, call("c1", "locate"), STEP_END),
      ],
    ],
    ["T9: tool-output-available for the unknown", [turn("stop", STEP, output("c7"), STEP_END)]],
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
    ["D1: turn 1 has text-start", [turn("tool-calls", STEP, text("First."), STEP_END)]],
    ["D1: turn 2 has tool-output-available", [GATED, turn("tool-calls", output("c1")), FINAL]],
    [
      "D1: turn 1 has text-end",
      [turn("tool-calls", STEP, text("First."), STEP_END), FINAL],
      "preview",
    ],
    [
      "D2: turn 1 announces lookup",
      [
        turn(
          "tool-calls",
          STEP,
          ungatedCall("c0", "lookup"),
          call("c1", "pay"),
          approvalRequest("c1"),
          STEP_END,
        ),
      ],
    ],
    [
      "D3: turn 2 has text after",
      [GATED, turn("stop", STEP, output("c1"), text("Done."), STEP_END)],
    ],
    ["D4: turn 1 resets", [turn("stop", STEP, { type: "reset-step" }, STEP_END)]],
    ["D6: the result of c1", [GATED, FINAL]],
    [
      "progressive: turn 2",
      [GATED, turn("stop", STEP, text("Done."), STEP_END, output("c1"))],
      "progressive",
    ],
  ];
  test.each(rows)("%s", (fault, turns, release, parts) => {
    expect(faults(turns, release, parts).join("\n")).toContain(fault);
  });
});

function withMetadata(chunks: readonly Chunk[], metadata: object): Chunk[] {
  const finish = chunks.at(-1) ?? finishWithoutMetadata("stop");
  const messageMetadata = { ...(finish.messageMetadata as object), ...metadata };
  return [...chunks.slice(0, -1), { ...finish, messageMetadata }];
}

function finishWithoutMetadata(finishReason: string): Chunk {
  return { type: "finish", finishReason };
}

function completed(tool: string): Part {
  return { type: `tool-${tool}`, toolCallId: "c0", state: "output-available", output: {} };
}
