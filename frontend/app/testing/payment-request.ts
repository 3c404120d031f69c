import type { ApprovalRequest } from "../src/approvals/approval-requests.ts";

/** An approval request for a payment, with changes. */
export function payment(change: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    approvalId: "ap-1",
    messageId: "m-1",
    toolCallId: "call-1",
    toolName: "process_payment",
    title: "Send money",
    input: { recipient: "Ada", amount: 50 },
    descriptor: { toolName: "process_payment", editable: true, rememberable: true, schema: SCHEMA },
    ...change,
  };
}

const SCHEMA = {
  type: "object",
  properties: {
    recipient: { type: "string" },
    amount: { type: "number" },
    currency: { type: "string", enum: ["EUR", "CHF"] },
  },
  required: ["recipient", "amount"],
};
