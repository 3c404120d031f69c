import { isToolPart, lastAssistantParts, type MessagePart } from "./message-parts.ts";
import type { SendRule } from "./send-automatically.ts";

function isDecided(part: MessagePart): boolean {
  return isToolPart(part) && part.state === "approval-responded";
}

function isPending(part: MessagePart): boolean {
  return isToolPart(part) && part.state === "approval-requested";
}

function isText(part: MessagePart): boolean {
  return part.type === "text";
}

function isCompleted(part: MessagePart): boolean {
  return isToolPart(part) && (part.state === "output-available" || part.state === "output-error");
}

function isDenied(part: MessagePart): boolean {
  return isToolPart(part) && part.state === "output-denied";
}

/**
 * The S2 rule for SSE as written (S2-R10 to R12, R14): a decision, no text, no completed tool.
 *
 * It ignores other pending approvals: when a step requests two, it sends after the first decision.
 */
export const s2SseLiteral: SendRule = ({ messages }) => {
  const parts = lastAssistantParts(messages);
  return parts.some(isDecided) && !parts.some(isText) && !parts.some(isCompleted);
};

/** The S2 rule for BIDI as written (S2-R13): as for SSE, and no pending approval. */
export const s2BidiLiteral: SendRule = ({ messages }) => {
  const parts = lastAssistantParts(messages);
  return (
    parts.some(isDecided) &&
    !parts.some(isText) &&
    !parts.some(isPending) &&
    !parts.some(isCompleted)
  );
};

/** The corrected S2 rule for SSE: no pending approval, and a denial counts as a completed tool. */
export const s2Sse: SendRule = ({ messages }) => {
  const parts = lastAssistantParts(messages);
  return (
    parts.some(isDecided) &&
    !parts.some(isText) &&
    !parts.some(isPending) &&
    !parts.some((part) => isCompleted(part) || isDenied(part))
  );
};

/** The corrected S2 rule for BIDI, which is the one for SSE: approvals do not depend on the transport. */
export const s2Bidi: SendRule = s2Sse;
