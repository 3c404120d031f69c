import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import { toolOrigin } from "../approvals/tool-origin.ts";
import { isRecord } from "../is-record.ts";
import type { Approval } from "./approval.ts";

/** The approval as the request of a card, which is the same as in its chat. */
export function cardRequest(approval: Approval): ApprovalRequest {
  const { approvalId, tool, agent, hint, title, changed, payload, payloadSchema } = approval;
  const { preview, digest } = approval;
  const origin = toolOrigin(approval.toolMetadata);
  const descriptor = {
    toolName: tool,
    agent,
    editable: approval.editable === true,
    rememberable: approval.rememberable === true,
    grantTtl: approval.grantTtl,
    expiresAt: approval.expiresAt,
    schema: approval.schema,
    changed,
    approvers: approval.approvers,
    responseSchema: approval.responseSchema,
    defaults: isRecord(approval.defaults) ? approval.defaults : {},
  };
  return {
    approvalId,
    messageId: "",
    // The card is found by it when the focus moves on; ids of calls are unique in a chat only.
    toolCallId: approvalId,
    toolName: tool,
    input: approval.arguments,
    agent,
    descriptor,
    ...(hint !== undefined && { reason: hint }),
    ...(title !== undefined && { title }),
    ...(preview !== undefined && { preview }),
    ...(digest !== undefined && { digest }),
    ...(changed !== undefined && { changed }),
    ...(payload !== undefined && { payload }),
    ...(payloadSchema !== undefined && { payloadSchema }),
    ...(origin !== undefined && { origin }),
  };
}
