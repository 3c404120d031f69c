import { expect, test } from "vitest";
import { openRequests } from "./requests.ts";

function message(...parts: object[]) {
  return { id: "m1", role: "assistant", parts: [{ type: "step-start" }, ...parts] };
}

function pay(id: string, state: string, approved?: boolean) {
  return {
    type: "tool-pay",
    toolCallId: `c${id}`,
    title: "Send money",
    state,
    input: { amount: 5 },
    approval: { id: `ap${id}`, ...(approved !== undefined && { approved }) },
  };
}

const asked = (id: string) => pay(id, "approval-requested");
const answers = (parts: object[], unsent: string[]) =>
  openRequests([message(...parts)], new Set(unsent)).map(({ approvalId, answer }) => [
    approvalId,
    answer,
  ]);

test("an open question knows its tool and its title", () => {
  expect(openRequests([message(asked("1"))], new Set())).toEqual([
    {
      approvalId: "ap1",
      messageId: "m1",
      toolCallId: "c1",
      toolName: "pay",
      input: { amount: 5 },
      title: "Send money",
    },
  ]);
});

test("an answer that has not gone out stays among the questions of its step", () => {
  const parts = [pay("1", "approval-responded", true), asked("2")];
  expect(answers(parts, ["ap1"])).toEqual([
    ["ap1", "approved"],
    ["ap2", undefined],
  ]);
});

test("an answer that went out is no question any more", () => {
  expect(answers([pay("1", "approval-responded", true), asked("2")], [])).toEqual([
    ["ap2", undefined],
  ]);
});

test("with the last answer all of them are on their way", () => {
  const parts = [pay("1", "approval-responded", true), pay("2", "approval-responded", false)];
  expect(answers(parts, ["ap1", "ap2"])).toEqual([]);
});

test("what the server decides by itself asks nobody", () => {
  const part = asked("1");
  expect(answers([{ ...part, approval: { ...part.approval, isAutomatic: true } }], [])).toEqual([]);
});

test("what a later message of the user has withdrawn asks nobody", () => {
  const user = { id: "u", role: "user", parts: [] };
  expect(openRequests([message(asked("1")), user], new Set())).toEqual([]);
});
