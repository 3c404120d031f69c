import { isTool, lastAnswer, type MessagePart, type SendRule } from "./messages.ts";

function isAnswered(part: MessagePart): boolean {
  return isTool(part) && part.state === "approval-responded";
}

function isPending(part: MessagePart): boolean {
  return isTool(part) && part.state === "approval-requested";
}

function isText(part: MessagePart): boolean {
  return part.type === "text";
}

function isCompleted(part: MessagePart): boolean {
  return isTool(part) && (part.state === "output-available" || part.state === "output-error");
}

function isDenied(part: MessagePart): boolean {
  return isTool(part) && part.state === "output-denied";
}

/**
 * The S2 rule for SSE as written (S2-R10 to R12, R14): an answer, no text, no completed tool.
 *
 * A second approval that still waits does not hold it back, so it sends too early when a step asks
 * for two; and an answer beside held answers goes out before its neighbours.
 */
export const s2SseLiteral: SendRule = ({ messages }) => {
  const parts = lastAnswer(messages);
  return parts.some(isAnswered) && !parts.some(isText) && !parts.some(isCompleted);
};

/** The S2 rule for BIDI as written (S2-R13): as for SSE, and no approval that still waits. */
export const s2BidiLiteral: SendRule = ({ messages }) => {
  const parts = lastAnswer(messages);
  return (
    parts.some(isAnswered) &&
    !parts.some(isText) &&
    !parts.some(isPending) &&
    !parts.some(isCompleted)
  );
};

function s2Corrected(parts: readonly MessagePart[]): boolean {
  return (
    parts.some(isAnswered) &&
    !parts.some(isText) &&
    !parts.some(isPending) &&
    !parts.some((part) => isCompleted(part) || isDenied(part))
  );
}

/** The S2 rule for SSE put right: it waits for every approval, and a denial is a completed tool. */
export const s2Sse: SendRule = ({ messages }) => s2Corrected(lastAnswer(messages));

/** The S2 rule for BIDI put right, which is the one for SSE: there is one way to ask. */
export const s2Bidi: SendRule = ({ messages }) => s2Corrected(lastAnswer(messages));
