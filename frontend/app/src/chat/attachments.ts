import type { AttachmentAdapter } from "@assistant-ui/react";
import { errorMessage, uploadFile } from "../api.ts";
import { createId } from "../chat-id.ts";

/** The size limit of the server, checked before a file is read. */
export const MAX_BYTES = 20 * 1024 * 1024;

function toDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(`The file ${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** An attachment adapter that stores files on the server, or in the message if it stores none. */
export function chatAttachments(
  chat: string,
  onError: (message: string) => void,
): AttachmentAdapter {
  const store = async (file: File) => {
    try {
      const stored = await uploadFile(chat, file);
      return { stored, data: stored?.url ?? (await toDataUrl(file)) };
    } catch (error) {
      onError(errorMessage(error));
      throw error;
    }
  };
  return {
    accept: "*",
    async add({ file }) {
      if (file.size > MAX_BYTES) {
        const message = `The file ${file.name} is over 20 MiB; attach a smaller one.`;
        onError(message);
        throw new Error(message);
      }
      return {
        id: createId(),
        type: file.type.startsWith("image/") ? "image" : "file",
        name: file.name,
        contentType: file.type,
        file,
        status: { type: "requires-action", reason: "composer-send" },
      };
    },
    async send(attachment) {
      const { stored, data } = await store(attachment.file);
      const mimeType = stored?.mediaType ?? (attachment.contentType || "application/octet-stream");
      const content = [{ type: "file" as const, data, mimeType, filename: attachment.name }];
      return { ...attachment, status: { type: "complete" }, content };
    },
    async remove() {},
  };
}
