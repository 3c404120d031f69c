import { isTool, type MessagePart } from "./messages.ts";

/** What a `data-approval` part tells of a card that nobody can answer any more (D7). */
export interface ClosedApproval {
  readonly approvalId: string;
  readonly messageId: string;
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

/**
 * The messages with one card closed; the same array if none of them holds it open.
 *
 * A stock client goes on showing such a card as open until the page is loaded anew.
 */
export function withClosedApproval<Message extends Patched>(
  messages: Message[],
  { approvalId, messageId, reason }: ClosedApproval,
): Message[] {
  const isMeant = (message: Message) =>
    message.id === messageId &&
    message.parts.some((part) => isOpenCard(part as MessagePart, approvalId));
  if (!messages.some(isMeant)) return messages;
  return messages.map((message) =>
    isMeant(message)
      ? {
          ...message,
          parts: message.parts.map((part) =>
            isOpenCard(part as MessagePart, approvalId)
              ? closed(part as MessagePart, reason)
              : part,
          ),
        }
      : message,
  );
}
