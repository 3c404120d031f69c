import { createId } from "./random-id.ts";

const newChats = new Set<string>();

/** Whether a chat was created in this page and is not stored on the server yet. */
export function isNewChat(id: string): boolean {
  return newChats.has(id);
}

/** Record that the server stores the chat, so that it is loaded when it is opened again. */
export function markChatAsSaved(id: string): void {
  newChats.delete(id);
}

/** The id of a new chat; that of the last one while it is empty, so that its draft is found. */
export function createChatId(): string {
  for (const id of newChats) return id;
  const id = createId();
  newChats.add(id);
  return id;
}
