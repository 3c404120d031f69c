import type { FileUIPart } from "ai";
import { uploadFile } from "../api.ts";

/** The size limit of the server, checked before a file is read. */
const MAX_BYTES = 20 * 1024 * 1024;

/** The sentence about the first file that is too large; undefined if there is none. */
export function sizeProblem(files: readonly File[]): string | undefined {
  const large = files.find((file) => file.size > MAX_BYTES);
  return large && `The file ${large.name} is over 20 MiB; attach a smaller one.`;
}

function toDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(`The file ${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

interface StoredPart {
  readonly part: FileUIPart;
  readonly notice: string | undefined;
}

async function toStoredPart(chat: string, file: File): Promise<StoredPart> {
  const stored = await uploadFile(chat, file);
  const part: FileUIPart = {
    type: "file",
    url: stored?.url ?? (await toDataUrl(file)),
    mediaType: stored?.mediaType ?? (file.type || "application/octet-stream"),
    filename: file.name,
  };
  return { part, notice: stored?.notice };
}

/** The parts of stored files, and what the server says of those that no model reads. */
export interface StoredFiles {
  readonly parts: FileUIPart[];
  readonly notices: readonly string[];
}

/** Store files on the server, or in the message if the server stores none. */
export async function storeFiles(chat: string, files: readonly File[]): Promise<StoredFiles> {
  const stored = await Promise.all(files.map((file) => toStoredPart(chat, file)));
  const notices = stored.flatMap(({ notice }) => (notice === undefined ? [] : [notice]));
  return { parts: stored.map(({ part }) => part), notices };
}
