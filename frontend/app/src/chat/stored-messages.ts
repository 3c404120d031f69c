import type { UIMessage } from "ai";
import { RequestRefused, type StoredChat } from "sluicegate";
import { request } from "../api.ts";

/** The messages of a chat, and whether the server has died during the last answer. */
export interface StoredMessages {
  readonly messages: readonly UIMessage[];
  readonly isInterrupted: boolean;
}

/** Load the stored messages of a chat. */
export async function loadMessages(id: string): Promise<StoredMessages> {
  try {
    const response = await request(`/chats/${encodeURIComponent(id)}`);
    const { messages, status } = (await response.json()) as StoredChat<UIMessage>;
    return { messages, isInterrupted: status === "interrupted" };
  } catch (error) {
    // A chat is stored with its first message; before that it is unknown to the server.
    if (error instanceof RequestRefused && error.status === 404) {
      return { messages: [], isInterrupted: false };
    }
    throw error;
  }
}
