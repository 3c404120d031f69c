import {
  type AppendMessage,
  getExternalStoreMessages,
  type ThreadMessageLike,
  useAuiState,
} from "@assistant-ui/react";
import type { UIMessage } from "ai";

type Part = UIMessage["parts"][number];

/** All text of a message, as it is copied and edited. */
export function textOf(message: UIMessage): string {
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n\n");
}

/**
 * A message as assistant-ui lists it. What is drawn comes from the message itself, which is bound
 * to this one, so no more than the role and the text are copied.
 */
export function asThreadMessage(message: UIMessage): ThreadMessageLike {
  return {
    id: message.id,
    role: message.role,
    content: [{ type: "text", text: textOf(message) }],
  };
}

/** The message of the AI SDK that is being drawn; undefined before the first chunk of an answer. */
export function useMessage(): UIMessage | undefined {
  return useAuiState((state) => getExternalStoreMessages<UIMessage>(state.message)[0]);
}

/** The parts of a message that was composed: files first, as the AI SDK itself orders them. */
export function composedParts({ attachments, content }: AppendMessage): Part[] {
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
