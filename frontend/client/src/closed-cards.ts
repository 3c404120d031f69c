import { isTool, type MessagePart } from "./messages.ts";

/** What a `data-approval` part tells of a card that nobody can answer any more (D7). */
export interface ClosedApproval {
  readonly approvalId: string;
  /** Unknown, it is looked for in every message. */
  readonly messageId?: string;
  /** Such as `superseded` or `expired`. */
  readonly state: string;
  /** A sentence for the person. */
  readonly reason: string;
}

/** What the patch needs of a message; the messages of both majors fit. */
interface Patched {
  readonly id: string;
  readonly parts: readonly object[];
}

/** The card of a `data-approval` part, or undefined if it is another part. */
export function closedApproval(part: {
  readonly type: string;
  readonly data?: unknown;
}): ClosedApproval | undefined {
  if (part.type !== "data-approval" || typeof part.data !== "object" || part.data === null) {
    return undefined;
  }
  const { approvalId, messageId, state, reason } = part.data as Record<string, unknown>;
  if (typeof approvalId !== "string" || typeof messageId !== "string") return undefined;
  return { approvalId, messageId, state: String(state), reason: String(reason ?? "") };
}

/** The part as the stored history has it: a yes that came to nothing is an error, else a denial. */
function closed(part: MessagePart, reason: string): object {
  const approval = { ...part.approval, reason };
  if (part.approval?.approved === true) {
    return { ...part, state: "output-error", errorText: reason, approval: part.approval };
  }
  return { ...part, state: "output-denied", approval: { ...approval, approved: false } };
}

function isOpenCard(part: MessagePart, approvalId: string): boolean {
  const isOpen = part.state === "approval-requested" || part.state === "approval-responded";
  return isTool(part) && isOpen && part.approval?.id === approvalId;
}

function patched<Message extends Patched>(
  messages: Message[],
  messageId: string | undefined,
  approvalId: string,
  change: (part: MessagePart) => object,
): Message[] {
  const isMeant = (message: Message) =>
    (messageId === undefined || message.id === messageId) &&
    message.parts.some((part) => isOpenCard(part as MessagePart, approvalId));
  if (!messages.some(isMeant)) return messages;
  const part = (each: object) =>
    isOpenCard(each as MessagePart, approvalId) ? change(each as MessagePart) : each;
  return messages.map((message) =>
    isMeant(message) ? { ...message, parts: message.parts.map(part) } : message,
  );
}

/** What a live connection tells of an approval, wherever it was decided. */
export interface DecidedApproval {
  readonly approvalId: string;
  /** `approved` or `denied`, or how it ended without an answer. */
  readonly state: string;
  readonly reason?: string;
}

/** The messages with one approval decided as a live connection tells; the same array if none asks. */
export function withDecidedApproval<Message extends Patched>(
  messages: Message[],
  { approvalId, state, reason }: DecidedApproval,
): Message[] {
  if (state === "superseded" || state === "expired") {
    return withClosedApproval(messages, { approvalId, state, reason: reason ?? "" });
  }
  const approved = state === "approved";
  if (!approved && state !== "denied") return messages;
  return patched(messages, undefined, approvalId, (part) =>
    part.state === "approval-requested"
      ? {
          ...part,
          state: "approval-responded",
          approval: { ...part.approval, approved, ...(reason !== undefined && { reason }) },
        }
      : part,
  );
}

/**
 * The messages with one card closed; the same array if none of them holds it open.
 *
 * A stock client goes on showing such a card as open until the page is loaded anew.
 */
export function withClosedApproval<Message extends Patched>(
  messages: Message[],
  { approvalId, messageId, reason }: ClosedApproval,
): Message[] {
  return patched(messages, messageId, approvalId, (part) => closed(part, reason));
}
