import {
  type AppendMessage,
  getExternalStoreMessages,
  type ThreadMessageLike,
  useAuiState,
} from "@assistant-ui/react";
import type { UIMessage } from "ai";

type Part = UIMessage["parts"][number];

/** The text of a message, for copying and editing. */
export function textOf(message: UIMessage): string {
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n\n");
}

/**
 * Convert a message for assistant-ui. The page renders the original message, which is bound to the
 * converted one, so only the role and the text are needed.
 */
export function toThreadMessage(message: UIMessage): ThreadMessageLike {
  return {
    id: message.id,
    role: message.role,
    content: [{ type: "text", text: textOf(message) }],
  };
}

/** The current message of the AI SDK; undefined before the first chunk of an answer. */
export function useMessage(): UIMessage | undefined {
  return useAuiState((state) => getExternalStoreMessages<UIMessage>(state.message)[0]);
}

/** The parts of a composed message: files first, in the order of the AI SDK. */
export function toMessageParts({ attachments, content }: AppendMessage): Part[] {
  const files = (attachments ?? []).flatMap((attachment) =>
    attachment.content.flatMap((part): Part[] =>
      part.type === "file"
        ? [
            {
              type: "file",
              url: part.data,
              mediaType: part.mimeType,
              filename: attachment.name,
            },
          ]
        : [],
    ),
  );
  const texts = content.flatMap((part): Part[] =>
    part.type === "text" && part.text.trim() !== "" ? [{ type: "text", text: part.text }] : [],
  );
  return [...files, ...texts];
}
