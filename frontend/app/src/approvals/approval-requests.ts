import {
  type ApprovalDescriptor,
  approvalDescriptor,
  type ChatMessage,
  type PendingApproval,
  pendingApprovals,
  type Remember,
} from "sluicegate";

/** The server's description of a gated tool (`approvalDescriptor`). */
export interface Descriptor extends ApprovalDescriptor {
  /** The values that the tool uses for omitted arguments. */
  readonly defaults: Readonly<Record<string, unknown>>;
}

/** An approval request, as its card shows it. */
export interface ApprovalRequest extends PendingApproval {
  /** The title of the tool. */
  readonly title?: string;
  /** A decision that was made and will be sent together with the others. */
  readonly decision?: "approved" | "denied";
}

/** The decision of a person. */
export type Decision =
  | {
      readonly approved: true;
      /** Other arguments than the requested ones (A7). */
      readonly edit?: Record<string, unknown>;
      /** Grant later calls of the tool in this chat (A8). */
      readonly remember?: Remember;
    }
  | { readonly approved: false; readonly reason?: string };

export type Decide = (approvalId: string, decision: Decision) => void;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parse a descriptor; an invalid one permits neither edits nor grants. */
export function parseDescriptor(value: unknown): Descriptor {
  const defaults = isRecord(value) && isRecord(value.defaults) ? value.defaults : {};
  return { ...approvalDescriptor(value), defaults };
}

/** The properties of a tool part that an approval request needs. */
interface RequestPart {
  readonly toolCallId?: string;
  readonly title?: string;
  readonly state?: string;
  readonly approval?: { readonly id: string; readonly approved?: boolean };
}

interface Message {
  readonly id: string;
  readonly parts: readonly object[];
}

/** The message before its unsent decisions. */
function beforeDecisions(message: Message, unsent: ReadonlySet<string>): Message {
  const parts = message.parts as readonly RequestPart[];
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

function toRequest(
  pending: PendingApproval,
  parts: readonly RequestPart[],
  unsent: ReadonlySet<string>,
): ApprovalRequest {
  const part = parts.find(({ approval }) => approval?.id === pending.approvalId);
  return {
    ...pending,
    ...(part?.title !== undefined && { title: part.title }),
    ...(unsent.has(pending.approvalId) && {
      decision: part?.approval?.approved === true ? "approved" : "denied",
    }),
  };
}

/**
 * The open approval requests, including those whose decision waits for the others; empty after the
 * last decision, with which all of them are sent.
 */
export function approvalRequests(
  messages: readonly Message[],
  unsent: ReadonlySet<string>,
): readonly ApprovalRequest[] {
  const last = messages.at(-1);
  if (last === undefined) return [];
  const before = [
    ...messages.slice(0, -1),
    beforeDecisions(last, unsent),
  ] as unknown as ChatMessage[];
  const pending = pendingApprovals(before);
  if (pending.every(({ approvalId }) => unsent.has(approvalId))) return [];
  const parts = messages.flatMap((message) => message.parts) as readonly RequestPart[];
  return pending.map((approval) => toRequest(approval, parts, unsent));
}

/** Whether two lists of requests render the same. */
export function areSameRequests(
  one: readonly ApprovalRequest[],
  other: readonly ApprovalRequest[],
): boolean {
  return (
    one.length === other.length &&
    one.every((request, index) => {
      const counterpart = other[index];
      return (
        counterpart !== undefined &&
        counterpart.approvalId === request.approvalId &&
        counterpart.decision === request.decision &&
        counterpart.title === request.title &&
        JSON.stringify(counterpart.input) === JSON.stringify(request.input)
      );
    })
  );
}
