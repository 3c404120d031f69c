import { expect, test } from "vitest";
import type { ChatMessage, MessagePart } from "./messages.ts";
import { pendingApprovals } from "./pending-approvals.ts";

function asking(more: object = {}): MessagePart {
  return {
    type: "tool-pay",
    toolCallId: "c1",
    state: "approval-requested",
    input: { amount: 5 },
    approval: { id: "a1" },
    ...more,
  };
}

function answer(id: string, ...parts: readonly MessagePart[]): ChatMessage {
  return { id, role: "assistant", parts };
}

const USER: ChatMessage = { id: "u1", role: "user", parts: [{ type: "text" }] };
const PENDING = {
  approvalId: "a1",
  messageId: "m1",
  toolCallId: "c1",
  toolName: "pay",
  input: { amount: 5 },
};

function card(input: unknown, approval: object = {}): MessagePart {
  return {
    type: "tool-adk_request_confirmation",
    toolCallId: "a1",
    state: "approval-requested",
    input,
    approval: { id: "a1", ...approval },
  };
}

const CALL = { id: "c1", name: "pay", args: { amount: 5 } };

test.each([
  { title: "a call", part: asking(), found: PENDING },
  {
    title: "a call with a reason and a descriptor",
    part: asking({
      approval: { id: "a1", requestReason: "Much.", descriptor: { editable: true } },
    }),
    found: { ...PENDING, reason: "Much.", descriptor: { editable: true } },
  },
  {
    title: "a call of a tool known at run time",
    part: asking({ type: "dynamic-tool", toolName: "transfer" }),
    found: { ...PENDING, toolName: "transfer" },
  },
  {
    title: "a card",
    part: card({ originalFunctionCall: CALL, toolConfirmation: { hint: "Much.", payload: null } }),
    found: { ...PENDING, reason: "Much." },
  },
  {
    title: "a card whose request brings its own reason",
    part: card(
      { originalFunctionCall: CALL, toolConfirmation: { hint: "Much." } },
      { requestReason: "Too much." },
    ),
    found: { ...PENDING, reason: "Too much." },
  },
  {
    title: "a card without a hint and without arguments",
    part: card({ originalFunctionCall: { id: "c1", name: "pay" }, toolConfirmation: { hint: "" } }),
    found: { ...PENDING, input: {} },
  },
  ...[undefined, null, "text", [], {}, { originalFunctionCall: { name: 1 } }].map((input) => ({
    title: `a card that tells no call: ${JSON.stringify(input)}`,
    part: card(input),
    found: { ...PENDING, toolCallId: "a1", toolName: "adk_request_confirmation", input },
  })),
])("tells of $title", ({ part, found }) => {
  expect(pendingApprovals([USER, answer("m1", part)])).toEqual([found]);
});

test.each([
  "input-streaming",
  "input-available",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
])("tells nothing of a call that is %s", (state) => {
  expect(pendingApprovals([USER, answer("m1", asking({ state }))])).toEqual([]);
});

test("tells nothing of what the server decides by itself", () => {
  const part = asking({ approval: { id: "a1", isAutomatic: true } });
  expect(pendingApprovals([USER, answer("m1", part)])).toEqual([]);
});

test("tells nothing of what a later message of the user has superseded", () => {
  const messages = [USER, answer("m1", asking()), { ...USER, id: "u2" }];
  expect(pendingApprovals(messages)).toEqual([]);
  const next = answer("m2", asking({ approval: { id: "a2" } }));
  expect(pendingApprovals([...messages, next]).map((found) => found.approvalId)).toEqual(["a2"]);
});

test("tells all that wait, in order", () => {
  const ids = ["a1", "a2", "a3"];
  const parts = ids.map((id) => asking({ toolCallId: `c-${id}`, approval: { id } }));
  const messages = [USER, answer("m1", { type: "step-start" }, ...parts)];
  expect(pendingApprovals(messages).map((found) => found.approvalId)).toEqual(ids);
  expect(pendingApprovals([])).toEqual([]);
});
