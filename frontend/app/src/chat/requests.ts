import { type ChatMessage, type PendingApproval, pendingApprovals } from "sluicegate";
import type { ApprovalRequest } from "../approvals/request.ts";

/** What the cards need of a tool part. */
interface CardPart {
  readonly toolCallId?: string;
  readonly title?: string;
  readonly state?: string;
  readonly approval?: { readonly id: string; readonly approved?: boolean };
}

interface Message {
  readonly id: string;
  readonly parts: readonly object[];
}

/** The message as it was before the answers that have not gone out yet. */
function asked(message: Message, unsent: ReadonlySet<string>): Message {
  const parts = message.parts as readonly CardPart[];
  if (!parts.some(({ approval }) => approval !== undefined && unsent.has(approval.id))) {
    return message;
  }
  return {
    ...message,
    parts: parts.map((part) =>
      part.approval !== undefined && unsent.has(part.approval.id)
        ? { ...part, state: "approval-requested" }
        : part,
    ),
  };
}

function request(
  pending: PendingApproval,
  parts: readonly CardPart[],
  unsent: ReadonlySet<string>,
): ApprovalRequest {
  const part = parts.find(({ approval }) => approval?.id === pending.approvalId);
  return {
    ...pending,
    ...(part?.title !== undefined && { title: part.title }),
    ...(unsent.has(pending.approvalId) && {
      answer: part?.approval?.approved === true ? "approved" : "denied",
    }),
  };
}

/**
 * The questions that are open, and those whose answers wait for the others; nothing once the last
 * answer is given, since all of them are on their way then.
 */
export function openRequests(
  messages: readonly Message[],
  unsent: ReadonlySet<string>,
): readonly ApprovalRequest[] {
  const last = messages.at(-1);
  if (last === undefined) return [];
  const before = [...messages.slice(0, -1), asked(last, unsent)] as unknown as ChatMessage[];
  const pending = pendingApprovals(before);
  if (pending.every(({ approvalId }) => unsent.has(approvalId))) return [];
  const parts = messages.flatMap((message) => message.parts) as readonly CardPart[];
  return pending.map((one) => request(one, parts, unsent));
}

/** Whether two lists of questions would be drawn the same. */
export function sameRequests(
  one: readonly ApprovalRequest[],
  other: readonly ApprovalRequest[],
): boolean {
  return (
    one.length === other.length &&
    one.every((request, index) => {
      const twin = other[index];
      return (
        twin !== undefined &&
        twin.approvalId === request.approvalId &&
        twin.answer === request.answer &&
        twin.title === request.title &&
        JSON.stringify(twin.input) === JSON.stringify(request.input)
      );
    })
  );
}
