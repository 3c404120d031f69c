import type { UIMessage } from "ai";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { isToolPart, toolTitle } from "./tool-part.ts";

/** The number of each tool call among the calls of its name in the chat, by tool call id. */
export type CallNumbers = ReadonlyMap<string, number>;

export function callNumbers(messages: readonly UIMessage[]): CallNumbers {
  const counts = new Map<string, number>();
  const numbers = new Map<string, number>();
  for (const part of messages.flatMap((message) => message.parts)) {
    if (!isToolPart(part) || numbers.has(part.toolCallId)) continue;
    const name = visibleName(toolTitle(part));
    const number = (counts.get(name) ?? 0) + 1;
    counts.set(name, number);
    numbers.set(part.toolCallId, number);
  }
  return numbers;
}

export function areSameNumbers(one: CallNumbers, other: CallNumbers): boolean {
  return one.size === other.size && [...one].every(([id, number]) => other.get(id) === number);
}
