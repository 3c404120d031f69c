import { expect, test } from "vitest";
import { groupToolCalls } from "./tool-call-groups.ts";

const call = (id: string, more: object = {}) => ({
  type: "tool-search",
  toolCallId: id,
  state: "output-available",
  ...more,
});
const STEP = { type: "step-start" };
const TEXT = { type: "text" };

const lengths = (parts: readonly { readonly type: string }[]) =>
  groupToolCalls(parts).map((entry) => (entry.kind === "group" ? entry.calls.length : 1));

test.each([
  ["three finished calls, over steps", [STEP, call("a"), STEP, call("b"), call("c")], [3]],
  ["two finished calls", [call("a"), call("b")], [1, 1]],
  ["calls with a text between them", [call("a"), call("b"), TEXT, call("c")], [1, 1, 1, 1]],
  ["a gated call", [call("a"), call("b"), call("c", { approval: { id: "x" } })], [1, 1, 1]],
  ["a failed call", [call("a"), call("b"), call("c", { state: "output-error" })], [1, 1, 1]],
  ["a running call", [call("a"), call("b"), call("c", { preliminary: true })], [1, 1, 1]],
])("%s", (_, parts, expected) => {
  expect(lengths(parts)).toEqual(expected);
});
