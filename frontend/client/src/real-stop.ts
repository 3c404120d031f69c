import { refusalOf } from "./refusals.ts";
import { below, type HeaderSource, resolveHeaders, segment } from "./requests.ts";

export interface StopOptions {
  /** The address of the chat, such as `/api/chat`. */
  readonly api: string;
  readonly chatId: string;
  readonly headers?: HeaderSource;
  readonly credentials?: RequestCredentials;
  readonly fetch?: typeof fetch;
}

/**
 * Stop the running turn on the server; that nothing runs is no error.
 *
 * The `stop()` of a chat only leaves the stream, and the agent goes on. Call this first, then that.
 * Throws `RequestRefused` if the server refuses, what `fetch` throws if it cannot be reached, and an
 * `Error` for a chat id that no address can hold.
 */
export async function stopChat(options: StopOptions): Promise<void> {
  const { api, chatId, headers, credentials, fetch = globalThis.fetch } = options;
  const response = await fetch(below(api, `/${segment(chatId)}/stop`), {
    method: "POST",
    headers: await resolveHeaders(headers),
    ...(credentials && { credentials }),
  });
  if (response.ok) {
    await response.body?.cancel();
    return;
  }
  throw await refusalOf(response, "The chat could not be stopped.");
}
