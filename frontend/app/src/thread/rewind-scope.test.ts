import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { isFinal, rewindInWords, rewindScopes } from "./rewind-scope.ts";

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
  expect(rewindInWords({ count, isFinal: false })).toBe(sentence);
});

test.each([
  ["output-available", true, true],
  ["output-error", true, true],
  ["output-denied", false, false],
  ["approval-responded", true, false],
  ["approval-requested", undefined, false],
  ["output-available", undefined, false],
])("a call in state %s with the decision %s is final: %s", (state, approved, expected) => {
  expect(isFinal(answer(state, approved))).toBe(expected);
});

test("a message before an effect is not replaced, one after it is", () => {
  const user: UIMessage = { id: "u1", role: "user", parts: [] };
  const messages = [user, answer("output-available", true), user, answer("output-denied", false)];
  expect(rewindScopes(messages)).toEqual([
    { count: 3, isFinal: true },
    { count: 2, isFinal: false },
    { count: 1, isFinal: false },
    { count: 0, isFinal: false },
  ]);
});

test("the metadata say that an answer is final although its call shows no result yet", () => {
  const held = answer("approval-responded", true);
  expect(isFinal({ ...held, metadata: { rewindable: false } })).toBe(true);
});

test("an approved call that was not run leaves its answer replaceable", () => {
  const { parts, ...message } = answer("output-error", true);
  const refused = { ...parts[0], errorText: "Not run: this approval expired." } as never;
  expect(isFinal({ ...message, parts: [refused] })).toBe(false);
});
