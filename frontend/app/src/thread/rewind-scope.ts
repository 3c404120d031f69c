import type { UIMessage } from "ai";
import { isRecord } from "../is-record.ts";
import { isToolPart, type ToolPart } from "./tool-part.ts";

/** What an edit or another answer replaces: messages that follow the edited one, or the answer. */
export interface RewindScope {
  readonly count: number;
  /** Whether the server refuses to replace one of them. */
  readonly isFinal: boolean;
}

/** The sentence of a page about an answer that the server does not replace. */
export const IS_FINAL =
  "An approved tool has run since, or this was spoken live, so it cannot be replaced.";

function hasRun({ approval, errorText = "", state }: ToolPart): boolean {
  if (approval?.approved !== true) return false;
  const wasRefused = state === "output-error" && errorText.startsWith("Not run:");
  return state === "output-available" || (state === "output-error" && !wasRefused);
}

/**
 * Whether the server refuses to replace a message: an approved call has run, or the message is of a
 * live run. The metadata say so; a response that failed has none, but shows its calls.
 */
export function isFinal({ metadata, parts }: UIMessage): boolean {
  if (isRecord(metadata) && metadata.rewindable === false) return true;
  return parts.some(
    (part: ToolPart | { readonly type: string }) => isToolPart(part) && hasRun(part),
  );
}

/** What an edit of each message replaces. */
export function rewindScopes(messages: readonly UIMessage[]): readonly RewindScope[] {
  const lastFinal = messages.findLastIndex(isFinal);
  return messages.map((_, index) => ({
    count: messages.length - 1 - index,
    isFinal: lastFinal > index,
  }));
}

/** What an edit replaces, in words; the first message that follows is the answer. */
export function rewindInWords({ count }: RewindScope): string {
  if (count === 0) return "This replaces your message.";
  if (count === 1) return "This replaces the answer.";
  return `This replaces the answer and ${count - 1} later message${count === 2 ? "" : "s"}.`;
}
