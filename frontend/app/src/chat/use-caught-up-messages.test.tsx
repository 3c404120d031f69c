import { renderHook } from "@testing-library/react";
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { isBehind, useCaughtUpMessages } from "./use-caught-up-messages.ts";

const message = (...parts: object[]) =>
  ({ id: "a1", role: "assistant", parts }) as unknown as UIMessage;
const text = (text: string) => ({ type: "text", text });
const call = (state: string, toolCallId = "c1") => ({ type: "tool-pay", toolCallId, state });
const STEP = { type: "step-start" };

const SHOWN = message(STEP, text("I prepare it."), call("approval-responded"));

test.each([
  ["nothing", message(), true],
  ["an empty text", message(STEP, text("")), true],
  ["a part of the text", message(STEP, text("I prep")), true],
  ["the text alone", message(STEP, text("I prepare it.")), true],
  [
    "an earlier state of the call",
    message(STEP, SHOWN.parts[1] ?? {}, call("input-available")),
    true,
  ],
  ["all of it", message(...SHOWN.parts), false],
  [
    "the outcome of the call",
    message(STEP, text("I prepare it."), call("output-available")),
    false,
  ],
  ["another text", message(STEP, text("No.")), false],
  ["another call", message(STEP, text("I prepare it."), call("input-available", "c2")), false],
  ["a call in place of the text", message(STEP, call("input-available")), false],
  ["more parts", message(...SHOWN.parts, text("Paid.")), false],
])("a version with %s is behind: see the table", (_, version, expected) => {
  expect(isBehind(version, SHOWN)).toBe(expected);
});

type Props = [messages: UIMessage[], isBusy: boolean, isResuming: boolean];

/** Renders versions of the messages, and returns what is shown. */
function renderMessages(...initialProps: Props) {
  const { result, rerender } = renderHook(
    ([messages, isBusy, isResuming]: Props) =>
      useCaughtUpMessages(messages, { isBusy, isResuming }),
    { initialProps },
  );
  return (...props: Props) => {
    rerender(props);
    return result.current;
  };
}

const USER: UIMessage = { id: "u1", role: "user", parts: [] };
const START = [USER, message(STEP)];
const FURTHER = [USER, message(...SHOWN.parts, text("Paid."))];

test("what is shown stays until a resumed stream has caught up, or has ended", () => {
  const show = renderMessages([USER, SHOWN], false, false);
  expect(show([USER, SHOWN], true, true)).toEqual([USER, SHOWN]);
  expect(show([USER], true, true)).toEqual([USER, SHOWN]);
  expect(show([USER], true, false)).toEqual([USER, SHOWN]);
  expect(show(START, true, false)).toEqual([USER, SHOWN]);
  expect(show(FURTHER, true, false)).toBe(FURTHER);
  expect(show(START, true, false)).toEqual(FURTHER);
  expect(show(START, false, false)).toBe(START);
});

test("an answer that is requested again is not shown until it comes", () => {
  const show = renderMessages([USER, SHOWN], false, false);
  const messages = [USER];
  expect(show(messages, true, false)).toBe(messages);
  expect(show(START, true, false)).toBe(START);
});
