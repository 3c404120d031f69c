import { below, type HeaderSource, resolveHeaders } from "./requests.ts";

export interface StopOptions {
  /** The address of the chat, such as `/api/chat`. */
  readonly api: string;
  readonly chatId: string;
  readonly headers?: HeaderSource;
  readonly credentials?: RequestCredentials;
  readonly fetch?: typeof fetch;
}

/** The server has refused a request; the message is its own sentence. */
export class RequestRefused extends Error {
  override readonly name = "RequestRefused";
  /** The HTTP status. */
  readonly status: number;
  /** The server's name for the reason, from the header `x-error-code`. */
  readonly code: string | undefined;

  constructor(message: string, status: number, code: string | undefined) {
    super(message);
    this.status = status;
    this.code = code;
  }
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
  // An address with a segment of dots names another place, escaped or not.
  if (/^\.{0,2}$/.test(chatId)) throw new Error(`A chat cannot have the id "${chatId}".`);
  const response = await fetch(below(api, `/${encodeURIComponent(chatId)}/stop`), {
    method: "POST",
    headers: await resolveHeaders(headers),
    ...(credentials && { credentials }),
  });
  if (response.ok) {
    await response.body?.cancel();
    return;
  }
  const sentence = (await response.text()).trim() || "The chat could not be stopped.";
  const code = response.headers.get("x-error-code") ?? undefined;
  throw new RequestRefused(sentence, response.status, code);
}
