import { isTool, type Message, type Part } from "./messages.ts";

/** A `sendAutomaticallyWhen` rule. */
export type Predicate = (state: { messages: Message[] }) => boolean | PromiseLike<boolean>;

function answerIsOpen(part: Part): boolean {
  return isTool(part) && part.state === "approval-responded";
}

function asks(part: Part): boolean {
  return isTool(part) && part.state === "approval-requested";
}

function isText(part: Part): boolean {
  return part.type === "text";
}

function isCompleted(part: Part): boolean {
  return isTool(part) && (part.state === "output-available" || part.state === "output-error");
}

function last(messages: readonly Message[]): readonly Part[] {
  const message = messages.at(-1);
  return message?.role === "assistant" ? message.parts : [];
}

/** The S2 rule for SSE as written: a later approval that still waits does not hold it back. */
export const s2SseLiteral: Predicate = ({ messages }) => {
  const parts = last(messages);
  return parts.some(answerIsOpen) && !parts.some(isText) && !parts.some(isCompleted);
};

/** The S2 rule for BIDI as written: a pending approval holds it back, after the test for text. */
export const s2BidiLiteral: Predicate = ({ messages }) => {
  const parts = last(messages);
  return (
    parts.some(answerIsOpen) && !parts.some(isText) && !parts.some(asks) && !parts.some(isCompleted)
  );
};

/** The S2 rule put right: every pending approval holds it back on either transport, a denial too
 * counts as completed. */
export const s2Corrected: Predicate = ({ messages }) => {
  const parts = last(messages);
  return (
    !parts.some(asks) &&
    parts.some(answerIsOpen) &&
    !parts.some(isText) &&
    !parts.some((part) => isCompleted(part) || part.state === "output-denied")
  );
};

/** A rule that sends when either of two would. */
export function either(one: Predicate, other: Predicate): Predicate {
  return async (state) => (await one(state)) || (await other(state));
}
