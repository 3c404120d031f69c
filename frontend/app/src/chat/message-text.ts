import type { UIMessage } from "ai";

/** The text of a message, for copying and editing. */
export function textOf(message: UIMessage): string {
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n\n");
}
