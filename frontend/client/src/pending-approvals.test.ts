import { expect, test } from "vitest";
import type { ChatMessage, MessagePart } from "./message-parts.ts";
import { approvalDescriptor, pendingApprovals } from "./pending-approvals.ts";

function pendingPart(more: object = {}): MessagePart {
  return {
    type: "tool-pay",
    toolCallId: "c1",
    state: "approval-requested",
    input: { amount: 5 },
    approval: { id: "a1" },
    ...more,
  };
}

function assistantMessage(id: string, ...parts: readonly MessagePart[]): ChatMessage {
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

function confirmation(input: unknown, approval: object = {}): MessagePart {
  return {
    type: "tool-adk_request_confirmation",
    toolCallId: "a1",
    state: "approval-requested",
    input,
    approval: { id: "a1", ...approval },
  };
}

const CALL = { id: "c1", name: "pay", args: { amount: 5 } };

const FORM = { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] };

const CHANGED = { description: ["Pay.", "Pay twice."], parameters: [{}, null] };

test.each([
  { title: "a call", part: pendingPart(), expected: PENDING },
  {
    title: "a call of a changed tool of an agent",
    part: pendingPart({
      approval: { id: "a1", descriptor: { agent: "shop/billing", changed: CHANGED } },
      toolMetadata: { agent: "another" },
    }),
    expected: {
      ...PENDING,
      descriptor: { agent: "shop/billing", changed: CHANGED },
      agent: "shop/billing",
      changed: CHANGED,
    },
  },
  {
    title: "a call of a tool that asks with a payload",
    part: pendingPart({ approval: { id: "a1", descriptor: { payload: { days: 0 } } } }),
    expected: { ...PENDING, descriptor: { payload: { days: 0 } }, payload: { days: 0 } },
  },
  {
    title: "a call of a tool that asks with a form",
    part: pendingPart({
      approval: { id: "a1", descriptor: { payload: { seat: null }, payloadSchema: FORM } },
    }),
    expected: {
      ...PENDING,
      descriptor: { payload: { seat: null }, payloadSchema: FORM },
      payload: { seat: null },
      payloadSchema: FORM,
    },
  },
  {
    title: "a confirmation with a form",
    part: confirmation({
      originalFunctionCall: CALL,
      toolConfirmation: { hint: "", payload: { seat: null }, payloadSchema: FORM },
    }),
    expected: { ...PENDING, payload: { seat: null }, payloadSchema: FORM },
  },
  {
    title: "a confirmation with a payload",
    part: confirmation({
      originalFunctionCall: CALL,
      toolConfirmation: { hint: "", payload: { days: 0 } },
    }),
    expected: { ...PENDING, payload: { days: 0 } },
  },
  {
    title: "a call of an agent without a descriptor",
    part: pendingPart({ toolMetadata: { agent: "shop/billing" } }),
    expected: { ...PENDING, agent: "shop/billing" },
  },
  {
    title: "a call with a reason and a descriptor",
    part: pendingPart({
      approval: { id: "a1", requestReason: "Much.", descriptor: { editable: true } },
    }),
    expected: { ...PENDING, reason: "Much.", descriptor: { editable: true } },
  },
  {
    title: "a call of a dynamic tool",
    part: pendingPart({ type: "dynamic-tool", toolName: "transfer" }),
    expected: { ...PENDING, toolName: "transfer" },
  },
  {
    title: "a confirmation",
    part: confirmation({
      originalFunctionCall: CALL,
      toolConfirmation: { hint: "Much.", payload: null },
    }),
    expected: { ...PENDING, reason: "Much." },
  },
  {
    title: "a confirmation with a request reason",
    part: confirmation(
      { originalFunctionCall: CALL, toolConfirmation: { hint: "Much." } },
      { requestReason: "Too much." },
    ),
    expected: { ...PENDING, reason: "Too much." },
  },
  {
    title: "a confirmation without a hint and arguments",
    part: confirmation({
      originalFunctionCall: { id: "c1", name: "pay" },
      toolConfirmation: { hint: "" },
    }),
    expected: { ...PENDING, input: {} },
  },
  ...[undefined, null, "text", [], {}, { originalFunctionCall: { name: 1 } }].map((input) => ({
    title: `a confirmation without a call: ${JSON.stringify(input)}`,
    part: confirmation(input),
    expected: { ...PENDING, toolCallId: "a1", toolName: "adk_request_confirmation", input },
  })),
  {
    title: "the arguments that would run, where the part has those of the model",
    part: pendingPart({
      approval: { id: "a1", descriptor: { arguments: JSON.parse('{"__proto__":{"n":1}}') } },
    }),
    expected: {
      ...PENDING,
      input: JSON.parse('{"__proto__":{"n":1}}'),
      descriptor: { arguments: JSON.parse('{"__proto__":{"n":1}}') },
    },
  },
])("includes $title", ({ part, expected }) => {
  expect(pendingApprovals([USER, assistantMessage("m1", part)])).toEqual([expected]);
});

test.each([
  "input-streaming",
  "input-available",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
])("excludes a call with the state %s", (state) => {
  expect(pendingApprovals([USER, assistantMessage("m1", pendingPart({ state }))])).toEqual([]);
});

test("excludes automatic approvals", () => {
  const part = pendingPart({ approval: { id: "a1", isAutomatic: true } });
  expect(pendingApprovals([USER, assistantMessage("m1", part)])).toEqual([]);
});

test("excludes approvals that a later user message has superseded", () => {
  const messages = [USER, assistantMessage("m1", pendingPart()), { ...USER, id: "u2" }];
  expect(pendingApprovals(messages)).toEqual([]);
  const next = assistantMessage("m2", pendingPart({ approval: { id: "a2" } }));
  expect(pendingApprovals([...messages, next]).map((expected) => expected.approvalId)).toEqual([
    "a2",
  ]);
});

test("includes all pending approvals in order", () => {
  const ids = ["a1", "a2", "a3"];
  const parts = ids.map((id) => pendingPart({ toolCallId: `c-${id}`, approval: { id } }));
  const messages = [USER, assistantMessage("m1", { type: "step-start" }, ...parts)];
  expect(pendingApprovals(messages).map((expected) => expected.approvalId)).toEqual(ids);
  expect(pendingApprovals([])).toEqual([]);
});

test.each([undefined, null, "x", [], { editable: "yes", rememberable: 1, grantTtl: -1, agent: 5 }])(
  "an invalid descriptor %j permits nothing",
  (value) => {
    expect(approvalDescriptor(value)).toEqual({
      editable: false,
      rememberable: false,
      grantTtl: 86_400,
    });
  },
);

test("a descriptor is parsed", () => {
  const descriptor = {
    toolName: "pay",
    agent: "shop",
    editable: true,
    rememberable: true,
    grantTtl: 60,
    expiresAt: "2026-01-01T00:00:00.000+00:00",
    schema: { type: "object" },
    changed: CHANGED,
  };
  expect(approvalDescriptor(descriptor)).toEqual(descriptor);
  expect(approvalDescriptor({ changed: { description: ["one"], parameters: 5 } }).changed).toEqual(
    {},
  );
});
