import { expect, test } from "vitest";
import type { CallProgress, ToolProgress } from "../chat/tool-progress.ts";
import type { ToolPart } from "./tool-part.ts";
import { toolState } from "./tool-state.ts";

function progressOf(progress?: CallProgress): ToolProgress {
  return new Map(progress && [["c1", progress]]);
}

const WAITS = "waits for your other decisions";
const HELD = "done, waiting for your other approvals";
const approval = { id: "ap1", approved: true };

test.each<[Partial<ToolPart> & { state: string }, CallProgress | undefined, boolean, string]>([
  [{ state: "input-streaming" }, undefined, false, "being prepared"],
  [{ state: "input-available" }, undefined, false, "running"],
  [{ state: "input-available", providerExecuted: true }, "running", false, "running"],
  [{ state: "input-available", providerExecuted: true }, "done", true, HELD],
  [{ state: "input-available", providerExecuted: true }, undefined, true, HELD],
  [
    { state: "input-available", providerExecuted: true },
    "failed",
    true,
    "failed, waiting for your other approvals",
  ],
  [{ state: "approval-requested", approval: { id: "ap1" } }, undefined, true, "waits for you"],
  [{ state: "approval-responded", approval }, undefined, false, "approved, running"],
  [{ state: "approval-responded", approval }, "done", true, HELD],
  [{ state: "approval-responded", approval }, undefined, true, `approved, ${WAITS}`],
  [{ state: "input-available" }, undefined, true, WAITS],
  [
    { state: "input-available", providerExecuted: true, approval: { id: "a", approved: false } },
    undefined,
    true,
    "denied",
  ],
  [
    { state: "input-available", providerExecuted: true, approval },
    undefined,
    false,
    "approved, running",
  ],
  [
    { state: "approval-responded", approval: { id: "ap1", approved: false } },
    undefined,
    true,
    "denied",
  ],
  [
    {
      state: "approval-responded",
      approval: { id: "ap1", approved: false, reason: "This approval expired." },
    },
    undefined,
    false,
    "expired",
  ],
  [
    { state: "approval-responded", approval: { ...approval, isAutomatic: true } },
    undefined,
    false,
    "running",
  ],
  [{ state: "output-available", preliminary: true }, undefined, false, "running"],
  [{ state: "output-available" }, undefined, true, "done"],
  [
    { state: "output-denied", approval: { id: "ap1", approved: false } },
    undefined,
    false,
    "denied",
  ],
  [
    {
      state: "output-denied",
      approval: { id: "ap1", approved: false, reason: "Superseded before it was answered." },
    },
    undefined,
    false,
    "withdrawn",
  ],
  [
    {
      state: "output-denied",
      approval: { id: "ap1", approved: false, reason: "This approval expired." },
    },
    undefined,
    false,
    "expired",
  ],
  [{ state: "output-error", errorText: "No." }, undefined, false, "failed"],
  [{ state: "output-error", errorText: "Not run: too many." }, undefined, false, "not run"],
  [{ state: "output-error", errorText: "This approval expired." }, undefined, false, "expired"],
  [
    { state: "output-error", errorText: "The outcome is unknown: the server stopped." },
    undefined,
    false,
    "outcome unknown",
  ],
])("%o with progress %s, pending %s: %s", (part, progress, hasPending, label) => {
  const fullPart = { type: "tool-pay", toolCallId: "c1", ...part };
  expect(toolState(fullPart, { progress: progressOf(progress), hasPending }).label).toBe(label);
});

test.each([
  ["executed", HELD],
  ["failed", "failed, waiting for your other approvals"],
  ["unknown", "outcome unknown"],
])("after a reload, a held call that the ledger has as %s: %s", (recorded, label) => {
  const part = { type: "tool-pay", toolCallId: "c1", state: "approval-responded", approval };
  const context = { progress: progressOf(), hasPending: true, recorded };
  expect(toolState(part, context).label).toBe(label);
});

test.each([
  ["unknown", "outcome unknown"],
  ["executed", "done, as was found out later"],
  ["failed", "failed, as was found out later"],
  [undefined, "outcome unknown"],
])("an outcome that was unknown and is %s is %s", (recorded, label) => {
  const part: ToolPart = {
    type: "tool-pay",
    toolCallId: "c1",
    state: "output-error",
    errorText: "The outcome is unknown: the server stopped while this call ran.",
  };
  const context = { progress: progressOf(), hasPending: false, recorded };
  expect(toolState(part, context).label).toBe(label);
});
