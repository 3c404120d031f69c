import { isRecord } from "./is-record.ts";
import { isToolPart, type MessagePart } from "./message-parts.ts";

/** An approval that was closed without a decision, from a `data-approval` part (D7). */
export interface ClosedApproval {
  readonly approvalId: string;
  /** If undefined, the approval is searched for in every message. */
  readonly messageId?: string;
  /** Such as `superseded` or `expired`. */
  readonly state: string;
  /** A sentence for the user. */
  readonly reason: string;
}

/** An `approval` frame of a live connection, for a decision made in any client. */
export interface DecidedApproval {
  readonly approvalId: string;
  /** `approved` or `denied`, or the state in which the approval ended without a decision. */
  readonly state: string;
  readonly reason?: string;
}

/** The properties of a message that an update needs; the messages of both majors are assignable. */
interface UpdatableMessage {
  readonly id: string;
  readonly parts: readonly object[];
}

/** The closed approval that a `data-approval` part announces; undefined for any other part. */
export function closedApproval(part: {
  readonly type: string;
  readonly data?: unknown;
}): ClosedApproval | undefined {
  if (part.type !== "data-approval" || !isRecord(part.data)) return undefined;
  const { approvalId, messageId, state, reason } = part.data;
  if (typeof approvalId !== "string" || typeof messageId !== "string") return undefined;
  return { approvalId, messageId, state: String(state), reason: String(reason ?? "") };
}

function isOpenApproval(part: MessagePart, approvalId: string): boolean {
  const isOpen = part.state === "approval-requested" || part.state === "approval-responded";
  return isToolPart(part) && isOpen && part.approval?.id === approvalId;
}

/** Update the open parts of one approval; returns the same array if there is none. */
function updateApproval<Message extends UpdatableMessage>(
  messages: Message[],
  { approvalId, messageId }: { readonly approvalId: string; readonly messageId?: string },
  update: (part: MessagePart) => object,
): Message[] {
  const isTarget = (message: Message) =>
    (messageId === undefined || message.id === messageId) &&
    message.parts.some((part) => isOpenApproval(part as MessagePart, approvalId));
  if (!messages.some(isTarget)) return messages;
  const updated = (part: object) =>
    isOpenApproval(part as MessagePart, approvalId) ? update(part as MessagePart) : part;
  return messages.map((message) =>
    isTarget(message) ? { ...message, parts: message.parts.map(updated) } : message,
  );
}

/** The part as the stored history has it: an error if it was approved before, else a denial. */
function closedPart(part: MessagePart, reason: string): object {
  const approval = { ...part.approval, reason };
  if (part.approval?.approved === true) {
    return { ...part, state: "output-error", errorText: reason, approval: part.approval };
  }
  return { ...part, state: "output-denied", approval: { ...approval, approved: false } };
}

/**
 * The messages with one approval closed; the same array if the approval is not open in them.
 *
 * A stock client keeps the approval open until the messages are loaded again.
 */
export function withClosedApproval<Message extends UpdatableMessage>(
  messages: Message[],
  closed: ClosedApproval,
): Message[] {
  return updateApproval(messages, closed, (part) => closedPart(part, closed.reason));
}

/** The messages with one approval decided; the same array if the approval is not open in them. */
export function withDecidedApproval<Message extends UpdatableMessage>(
  messages: Message[],
  { approvalId, state, reason }: DecidedApproval,
): Message[] {
  if (state === "superseded" || state === "expired") {
    return withClosedApproval(messages, { approvalId, state, reason: reason ?? "" });
  }
  const approved = state === "approved";
  if (!approved && state !== "denied") return messages;
  return updateApproval(messages, { approvalId }, (part) =>
    part.state === "approval-requested"
      ? {
          ...part,
          state: "approval-responded",
          approval: { ...part.approval, approved, ...(reason !== undefined && { reason }) },
        }
      : part,
  );
}
