import type { AttachmentAdapter } from "@assistant-ui/react";
import { newId } from "../address.ts";
import { sentenceOf, uploadFile } from "../server.ts";

/** The server takes files up to this size; larger ones need not be read first. */
export const MOST_BYTES = 20 * 1024 * 1024;

function asDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(`The file ${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** Files of a chat: stored by the server, or inside the message where it stores none. */
export function chatAttachments(
  chat: string,
  complain: (sentence: string) => void,
): AttachmentAdapter {
  const kept = async (file: File) => {
    try {
      const stored = await uploadFile(chat, file);
      return { stored, data: stored?.url ?? (await asDataUrl(file)) };
    } catch (error) {
      complain(sentenceOf(error));
      throw error;
    }
  };
  return {
    accept: "*",
    async add({ file }) {
      if (file.size > MOST_BYTES) {
        const sentence = `The file ${file.name} is over 20 MiB; attach a smaller one.`;
        complain(sentence);
        throw new Error(sentence);
      }
      return {
        id: newId(),
        type: file.type.startsWith("image/") ? "image" : "file",
        name: file.name,
        contentType: file.type,
        file,
        status: { type: "requires-action", reason: "composer-send" },
      };
    },
    async send(attachment) {
      const { stored, data } = await kept(attachment.file);
      const mimeType = stored?.mediaType ?? (attachment.contentType || "application/octet-stream");
      const content = [{ type: "file" as const, data, mimeType, filename: attachment.name }];
      return { ...attachment, status: { type: "complete" }, content };
    },
    async remove() {},
  };
}
