import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { hasEffect, replacedInWords, replacedMessages } from "./replaced-messages.ts";

const answer = (state: string, approved?: boolean): UIMessage => ({
  id: "a1",
  role: "assistant",
  parts: [{ type: "tool-pay", toolCallId: "c1", state, approval: { id: "p1", approved } } as never],
});

test.each([
  [0, "This replaces your message."],
  [1, "This replaces the answer."],
  [2, "This replaces the answer and 1 later message."],
  [4, "This replaces the answer and 3 later messages."],
])("an edit before %i messages says what it replaces", (count, sentence) => {
  expect(replacedInWords({ count, hasEffect: false })).toBe(sentence);
});

test.each([
  ["output-available", true, true],
  ["output-error", true, true],
  ["output-denied", false, false],
  ["approval-requested", undefined, false],
  ["output-available", undefined, false],
])("a call in state %s with the decision %s has an effect: %s", (state, approved, expected) => {
  expect(hasEffect(answer(state, approved))).toBe(expected);
});

test("a message before an effect is not replaced, one after it is", () => {
  const user: UIMessage = { id: "u1", role: "user", parts: [] };
  const messages = [user, answer("output-available", true), user, answer("output-denied", false)];
  expect(replacedMessages(messages)).toEqual([
    { count: 3, hasEffect: true },
    { count: 2, hasEffect: false },
    { count: 1, hasEffect: false },
    { count: 0, hasEffect: false },
  ]);
});
