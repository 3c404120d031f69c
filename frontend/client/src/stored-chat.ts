import { refusalOf } from "./refusals.ts";
import { below, type HeaderSource, resolveHeaders, segment } from "./requests.ts";

/** A chat as the server holds it. */
export interface StoredChat<Message> {
  readonly id: string;
  readonly title: string;
  readonly messages: Message[];
  /** Whether a turn runs, or somebody has to answer. */
  readonly status: "ready" | "running" | "waiting";
}

export interface StoredChatOptions {
  /** What the addresses of the server begin with, such as `/api`. */
  readonly apiUrl: string;
  readonly chatId: string;
  readonly headers?: HeaderSource | undefined;
  readonly credentials?: RequestCredentials | undefined;
  readonly fetch?: typeof fetch | undefined;
}

/**
 * Load a chat; undefined if there is none of that id.
 *
 * Throws `RequestRefused` if the server refuses, and what `fetch` throws if it cannot be reached.
 */
export async function loadChat<Message>(
  options: StoredChatOptions,
): Promise<StoredChat<Message> | undefined> {
  const { apiUrl, chatId, headers, credentials, fetch = globalThis.fetch } = options;
  const response = await fetch(below(apiUrl, `/chats/${segment(chatId)}`), {
    headers: await resolveHeaders(headers),
    ...(credentials && { credentials }),
  });
  if (response.ok) return (await response.json()) as StoredChat<Message>;
  if (response.status === 404) {
    await response.body?.cancel();
    return undefined;
  }
  throw await refusalOf(response, "The chat could not be loaded.");
}
