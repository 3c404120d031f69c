import { expect, test } from "vitest";
import { approvalRequests, areSameRequests, noGroups } from "./approval-requests.ts";
import type { DecisionsInProgress } from "./decision.ts";

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
const accepted = (...ids: string[]): DecisionsInProgress =>
  new Map(ids.map((id) => [id, { state: "accepted", decision: { approved: true }, trace: {} }]));
const states = (parts: object[], ...decided: string[]) =>
  approvalRequests([message(...parts)], accepted(...decided)).map(({ approvalId, progress }) => [
    approvalId,
    progress?.state,
  ]);

test("a request has what the worker of the tool declares", () => {
  const worker = { worker: "shop", tool: "a.pay", description: "Pays.", destructive: true };
  const requests = [worker, { worker: "shop" }, { agent: "shop" }, { worker: 3 }].map(
    (toolMetadata) =>
      approvalRequests([message({ ...requested("1"), toolMetadata })], new Map())[0]?.origin,
  );
  expect(requests).toEqual([
    { worker: "shop", tool: "a.pay", description: "Pays.", isDestructive: true },
    { worker: "shop", isDestructive: false },
    undefined,
    undefined,
  ]);
});

test("a request has the tool and its title", () => {
  expect(approvalRequests([message(requested("1"))], new Map())).toEqual([
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

test("a decision of this page is listed as long as others are open", () => {
  const parts = [pay("1", "approval-responded", true), requested("2")];
  expect(states(parts, "ap1")).toEqual([
    ["ap1", "accepted"],
    ["ap2", undefined],
  ]);
});

test("a decision of another page is not listed", () => {
  expect(states([pay("1", "approval-responded", true), requested("2")])).toEqual([
    ["ap2", undefined],
  ]);
});

test("no request is listed after the last decision", () => {
  const parts = [pay("1", "approval-responded", true), pay("2", "approval-responded", false)];
  expect(states(parts, "ap1", "ap2")).toEqual([]);
});

test("an automatic approval is not listed", () => {
  const part = requested("1");
  expect(states([{ ...part, approval: { ...part.approval, isAutomatic: true } }])).toEqual([]);
});

test("a superseded request is not listed", () => {
  const user = { id: "u", role: "user", parts: [] };
  expect(approvalRequests([message(requested("1")), user], new Map())).toEqual([]);
});

test("a decided call is not listed beside the request of a later step", () => {
  const groups = noGroups();
  const decided = pay("1", "approval-responded", true);
  expect(approvalRequests([message(decided)], accepted("ap1"), groups)).toEqual([]);
  const listed = approvalRequests([message(decided, requested("2"))], accepted("ap1"), groups);
  expect(listed.map(({ approvalId }) => approvalId)).toEqual(["ap2"]);
});

test("a call that runs by the decision of another tab is not listed beside a later request", () => {
  const groups = noGroups();
  const sending: DecisionsInProgress = new Map([
    ["ap1", { state: "sending", decision: { approved: true } }],
  ]);
  expect(approvalRequests([message(requested("1"))], sending, groups)).toHaveLength(1);
  const later = message(pay("1", "approval-responded", true), requested("2"));
  expect(approvalRequests([later], sending, groups)).toHaveLength(1);
  const listed = approvalRequests([later], accepted("ap1"), groups);
  expect(listed.map(({ approvalId }) => approvalId)).toEqual(["ap2"]);
});

test("a decided call keeps its place beside the other requests of its group", () => {
  const groups = noGroups();
  const both = [message(requested("1"), requested("2"))];
  approvalRequests(
    both,
    new Map([["ap1", { state: "sending", decision: { approved: true } }]]),
    groups,
  );
  const listed = approvalRequests(both, accepted("ap1"), groups);
  expect(listed.map(({ approvalId }) => approvalId)).toEqual(["ap1", "ap2"]);
});

test("requests are the same only if all that their cards show is", () => {
  const shown = (descriptor: object, decided?: DecisionsInProgress) => {
    const part = { ...pay("a1", "approval-requested"), approval: { id: "a1", descriptor } };
    return approvalRequests([message(part)], decided ?? new Map());
  };
  const early = shown({ toolName: "pay" });
  const preview = { kind: "text", text: "Pays Ada." };
  const complete = shown({ toolName: "pay", preview, digest: "d" });
  expect(areSameRequests(early, shown({ toolName: "pay" }))).toBe(true);
  expect(areSameRequests(early, complete)).toBe(false);
  expect(areSameRequests(complete, early)).toBe(false);
  expect(areSameRequests(complete, [])).toBe(false);
  const decision = { approved: true } as const;
  const sending: DecisionsInProgress = new Map([["a1", { state: "sending", decision }]]);
  expect(areSameRequests(early, shown({ toolName: "pay" }, sending))).toBe(false);
});
