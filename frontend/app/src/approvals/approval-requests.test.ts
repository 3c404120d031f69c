import { expect, test } from "vitest";
import { approvalRequests } from "./approval-requests.ts";

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

const requested = (id: string) => pay(id, "approval-requested");
const decisions = (parts: object[], unsent: string[]) =>
  approvalRequests([message(...parts)], new Set(unsent)).map(({ approvalId, decision }) => [
    approvalId,
    decision,
  ]);

test("a request has the tool and its title", () => {
  expect(approvalRequests([message(requested("1"))], new Set())).toEqual([
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

test("an unsent decision is listed with the requests of its step", () => {
  const parts = [pay("1", "approval-responded", true), requested("2")];
  expect(decisions(parts, ["ap1"])).toEqual([
    ["ap1", "approved"],
    ["ap2", undefined],
  ]);
});

test("a sent decision is not listed", () => {
  expect(decisions([pay("1", "approval-responded", true), requested("2")], [])).toEqual([
    ["ap2", undefined],
  ]);
});

test("no request is listed after the last decision", () => {
  const parts = [pay("1", "approval-responded", true), pay("2", "approval-responded", false)];
  expect(decisions(parts, ["ap1", "ap2"])).toEqual([]);
});

test("an automatic approval is not listed", () => {
  const part = requested("1");
  expect(decisions([{ ...part, approval: { ...part.approval, isAutomatic: true } }], [])).toEqual(
    [],
  );
});

test("a superseded request is not listed", () => {
  const user = { id: "u", role: "user", parts: [] };
  expect(approvalRequests([message(requested("1")), user], new Set())).toEqual([]);
});
