import { expect, test } from "vitest";
import { isSameHistory, withStoredMetadata } from "./compare-with-stored-history.ts";

const text = (value: string, state = "done") => ({ type: "text", text: value, state });
const call = (state: string, approved?: boolean) => ({
  type: "tool-pay",
  toolCallId: "c1",
  state,
  approval: { id: "a1", approved },
});
const answer = (...parts: object[]) => [{ id: "m1", parts }];

test.each([
  ["equal messages", [text("Hi")], [text("Hi")], true],
  ["steps and data", [{ type: "step-start" }, text("Hi"), { type: "data-x" }], [text("Hi")], true],
  ["the state of a text", [text("Hi", "streaming")], [text("Hi")], true],
  ["another text", [text("Hi")], [text("Hi there")], false],
  ["a decision", [call("approval-requested")], [call("approval-responded", true)], false],
  ["another decision", [call("output-denied", false)], [call("output-denied", true)], false],
  ["a missing part", [text("Hi")], [text("Hi"), call("approval-requested")], false],
])("%s: %#", (_, parts, stored, isSame) => {
  expect(isSameHistory(answer(...parts), answer(...stored))).toBe(isSame);
});

test("a message that is missing or has another id makes a difference", () => {
  const [message] = answer(text("Hi"));
  expect(isSameHistory([], answer(text("Hi")))).toBe(false);
  expect(isSameHistory([{ ...message, id: "m2", parts: [] }], answer())).toBe(false);
});

test("the metadata is that of the stored messages, and equal messages stay the same objects", () => {
  const [question, reply] = [{ id: "u1", metadata: { model: "m" } }, { id: "m1" }];
  const stored = [question, { id: "m1", metadata: { model: "n" } }];
  const messages = [question, reply];
  const updated = withStoredMetadata<object>(messages, stored);
  expect(updated).toEqual(stored);
  expect(updated[0]).toBe(question);
  expect(withStoredMetadata<object>(updated, stored)).toBe(updated);
});
