import type { UIMessage } from "ai";
import { useMemo, useRef } from "react";
import { isToolPart } from "../thread/tool-part.ts";

type Part = UIMessage["parts"][number];

/** The states of a call in their order; every other state is an outcome. */
const STATES = ["input-streaming", "input-available", "approval-requested", "approval-responded"];

function rankOf(state: string): number {
  const rank = STATES.indexOf(state);
  return rank === -1 ? STATES.length : rank;
}

/** How far a part has got in comparison with another version; undefined if it is another part. */
function progress(part: Part, shown: Part): number | undefined {
  if (part.type !== shown.type) return undefined;
  if (isToolPart(part) && isToolPart(shown)) {
    if (part.toolCallId !== shown.toolCallId) return undefined;
    return rankOf(part.state) - rankOf(shown.state);
  }
  if ("text" in part && "text" in shown) {
    const isSame = part.text.startsWith(shown.text) || shown.text.startsWith(part.text);
    return isSame ? part.text.length - shown.text.length : undefined;
  }
  return 0;
}

/** Whether a message is an earlier state of the shown one. */
export function isBehind(message: UIMessage, shown: UIMessage): boolean {
  let isShorter = message.parts.length < shown.parts.length;
  for (const [index, part] of message.parts.entries()) {
    const before = shown.parts[index];
    const difference = before && progress(part, before);
    if (difference === undefined || difference > 0) return false;
    if (difference < 0) isShorter = true;
  }
  return isShorter;
}

/** The messages with the shown version of the last one, if theirs is missing or behind. */
function withShown(messages: UIMessage[], shown: readonly UIMessage[]): UIMessage[] {
  const answer = shown.at(-1);
  const last = messages.at(-1);
  if (answer?.role !== "assistant" || last === undefined) return messages;
  // The server stores an answer only when it ends.
  if (last.id === shown.at(-2)?.id) return [...messages, answer];
  return last.id === answer.id && isBehind(last, answer) ? messages.with(-1, answer) : messages;
}

interface ShownOptions {
  /** Whether an answer is received, or will be. */
  readonly isBusy: boolean;
  /** Whether a stream is being resumed, or the connection. */
  readonly isResuming: boolean;
}

/**
 * The messages to show. A resumed stream begins with what is shown already: until it has caught up,
 * the last message stays as it is.
 */
export function useCaughtUpMessages(messages: UIMessage[], options: ShownOptions): UIMessage[] {
  const { isBusy, isResuming } = options;
  const last = useRef(messages);
  const isResumed = useRef(false);
  return useMemo(() => {
    isResumed.current = isResuming || (isResumed.current && isBusy);
    last.current = isResumed.current ? withShown(messages, last.current) : messages;
    return last.current;
  }, [messages, isBusy, isResuming]);
}
