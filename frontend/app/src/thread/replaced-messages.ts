import type { UIMessage } from "ai";
import { isToolPart, type ToolPart } from "./tool-part.ts";

/** What an edit or another answer replaces: messages that follow the edited one, or the answer. */
export interface ReplacedMessages {
  readonly count: number;
  /** Whether an approved call among them has run; the server does not forget its effect. */
  readonly hasEffect: boolean;
}

/** The sentence of a page about an effect that would be forgotten. */
export const EFFECT_REMAINS = "An approved tool has run since, so this cannot be replaced.";

/** Whether a message has an approved call that has run. */
export function hasEffect({ parts }: UIMessage): boolean {
  return parts.some((part: ToolPart | { readonly type: string }) => {
    if (!isToolPart(part) || part.approval?.approved !== true) return false;
    return part.state === "output-available" || part.state === "output-error";
  });
}

/** What an edit of each message replaces. */
export function replacedMessages(messages: readonly UIMessage[]): readonly ReplacedMessages[] {
  const lastEffect = messages.findLastIndex(hasEffect);
  return messages.map((_, index) => ({
    count: messages.length - 1 - index,
    hasEffect: lastEffect > index,
  }));
}

/** What an edit replaces, in words; the first message that follows is the answer. */
export function replacedInWords({ count }: ReplacedMessages): string {
  if (count === 0) return "This replaces your message.";
  if (count === 1) return "This replaces the answer.";
  return `This replaces the answer and ${count - 1} later message${count === 2 ? "" : "s"}.`;
}
