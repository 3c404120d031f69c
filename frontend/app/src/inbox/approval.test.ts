import { expect, test } from "vitest";
import { approvalRequests } from "../approvals/approval-requests.ts";
import { age } from "./age.ts";
import type { Approval } from "./approval.ts";
import { cardRequest } from "./card-request.ts";

const approval: Approval = {
  approvalId: "ask-1",
  chatId: "c1",
  requester: "ann",
  tool: "pay",
  title: "Send money",
  toolMetadata: { worker: "bank", description: "Pays.", destructive: true },
  agent: "shop/till",
  state: "requested",
  requestedAt: "2026-01-01T00:00:00Z",
  expiresAt: "2999-01-01T00:00:00Z",
  arguments: { to: "Ada", n: 5 },
  defaults: { currency: "EUR" },
  hint: "Shall 5 be paid?",
  editable: true,
  rememberable: true,
  grantTtl: 60,
  schema: { type: "object" },
  changed: { description: ["Pay.", "Pays."] },
  payload: { note: "" },
  decisions: [],
};

/** The part of the chat's message with the same approval. */
const part = {
  type: "tool-pay",
  toolCallId: "ask-1",
  title: "Send money",
  toolMetadata: approval.toolMetadata,
  state: "approval-requested",
  input: approval.arguments,
  approval: {
    id: "ask-1",
    requestReason: "Shall 5 be paid?",
    descriptor: {
      toolName: "pay",
      agent: "shop/till",
      editable: true,
      rememberable: true,
      grantTtl: 60,
      expiresAt: approval.expiresAt,
      schema: approval.schema,
      changed: approval.changed,
      defaults: approval.defaults,
      payload: approval.payload,
    },
  },
};

test("the card of the inbox is that of the chat", () => {
  const [inChat] = approvalRequests(
    [{ id: "", role: "assistant", parts: [part] } as never],
    new Map(),
  );
  const card = cardRequest(approval);
  const { payload: _, ...descriptor } = part.approval.descriptor;
  expect(card).toEqual({ ...inChat, descriptor });
});

test.each([
  [59_000, "just now"],
  [-5_000, "just now"],
  [60_000, "1 min ago"],
  [3_599_000, "59 min ago"],
  [3_600_000, "1 h ago"],
  [47 * 3_600_000, "47 h ago"],
  [48 * 3_600_000, "2 days ago"],
])("what was requested %i ms ago is %s", (passed, words) => {
  const now = Date.parse(approval.requestedAt);
  expect(age(approval.requestedAt, now + passed)).toBe(words);
});
