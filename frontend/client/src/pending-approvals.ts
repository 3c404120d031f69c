import { asks, type ChatMessage, type MessagePart, toolName } from "./messages.ts";

/** An approval that waits for a person, in the words of the call that it guards. */
export interface PendingApproval {
  /** What `addToolApprovalResponse` takes as `id`. */
  readonly approvalId: string;
  readonly messageId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** The arguments of the call, exactly as they will be used (S2-R44). */
  readonly input: unknown;
  /** Why the agent asks; AI SDK 7 and the style `confirmation`. */
  readonly reason?: string;
  /** What the server tells about the tool; AI SDK 7. */
  readonly descriptor?: unknown;
}

interface GuardedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly hint?: string;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The call that a card of the style `confirmation` stands for, if it tells one. */
function original(part: MessagePart): GuardedCall | undefined {
  if (toolName(part) !== "adk_request_confirmation" || !isRecord(part.input)) return undefined;
  const { originalFunctionCall: call, toolConfirmation: confirmation } = part.input;
  if (!isRecord(call) || typeof call.id !== "string" || typeof call.name !== "string") {
    return undefined;
  }
  const hint = isRecord(confirmation) ? confirmation.hint : undefined;
  return {
    toolCallId: call.id,
    toolName: call.name,
    input: call.args ?? {},
    ...(typeof hint === "string" && hint !== "" && { hint }),
  };
}

function pending(part: MessagePart, messageId: string): PendingApproval[] {
  if (!asks(part) || part.approval === undefined) return [];
  const { id: approvalId, requestReason, descriptor } = part.approval;
  const { hint, ...call } = original(part) ?? {
    toolCallId: part.toolCallId ?? "",
    toolName: toolName(part),
    input: part.input,
    hint: undefined,
  };
  const reason = requestReason ?? hint;
  return [
    {
      approvalId,
      messageId,
      ...call,
      ...(reason !== undefined && { reason }),
      ...(descriptor !== undefined && { descriptor }),
    },
  ];
}

/**
 * The approvals that wait for a person, in order, in the style `call` and in `confirmation`.
 *
 * What a user's message stands behind is superseded (A5), though a card may still look open; and
 * what the server decides by itself (A8) waits for nobody.
 */
export function pendingApprovals(messages: readonly ChatMessage[]): PendingApproval[] {
  const since = messages.findLastIndex((message) => message.role === "user");
  return messages
    .slice(since + 1)
    .filter((message) => message.role === "assistant")
    .flatMap((message) => message.parts.flatMap((part) => pending(part, message.id)));
}
