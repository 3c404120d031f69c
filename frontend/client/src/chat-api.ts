import { refusalFromResponse } from "./refusals.ts";

/** Request headers, or a function that returns them for each request. */
export type HeaderSource =
  | Record<string, string>
  | Headers
  | (() => HeadersValue | Promise<HeadersValue>);

/** Request headers, as an object or as `Headers`. */
export type HeadersValue = Record<string, string> | Headers;

/** The headers as a plain object with lower-case names; a function is called on every request. */
export async function resolveHeaders(
  source: HeaderSource | undefined,
): Promise<Record<string, string>> {
  const headers = typeof source === "function" ? await source() : source;
  return Object.fromEntries(new Headers(headers));
}

function splitUrl(api: string): readonly [path: string, query: string] {
  const end = api.search(/[?#]/);
  const path = end === -1 ? api : api.slice(0, end);
  return [path.replace(/\/$/, ""), end === -1 ? "" : api.slice(end)];
}

/** The URL of a path below `api`; the query of `api` is kept. */
export function urlBelow(api: string, path: string): string {
  const [base, query] = splitUrl(api);
  return `${base}${path}${query}`;
}

/** The URL that has `path` in place of the last segment of `api`; the query of `api` is kept. */
export function urlBeside(api: string, path: string): string {
  const [base, query] = splitUrl(api);
  return `${base.replace(/\/[^/]*$/, "")}${path}${query}`;
}

/**
 * A chat id, encoded as one segment of a URL path.
 *
 * Throws an `Error` for an id that a URL would resolve to another path: an empty one, `.` or `..`.
 */
function chatIdSegment(chatId: string): string {
  if (/^\.{0,2}$/.test(chatId)) throw new Error(`A chat cannot have the id "${chatId}".`);
  return encodeURIComponent(chatId);
}

/** A chat as the server stores it: the response of `GET /chats/{id}`. */
export interface StoredChat<Message> {
  readonly id: string;
  readonly title: string;
  readonly messages: Message[];
  /**
   * `running` during a turn, `waiting` while an approval or a client-side call is open, `interrupted`
   * if the server died during the last answer, which continues when its message is posted again.
   */
  readonly status: "ready" | "running" | "waiting" | "interrupted";
}

/** The options of `loadChat` and `loadGrants`. */
export interface LoadChatOptions {
  /** The URL prefix of the server's routes, such as `/api`. */
  readonly apiUrl: string;
  readonly chatId: string;
  readonly headers?: HeaderSource | undefined;
  readonly credentials?: RequestCredentials | undefined;
  readonly fetch?: typeof fetch | undefined;
}

/**
 * Load a stored chat; resolves to undefined if the server has no chat with this id.
 *
 * Rejects with `RequestRefused` if the server refuses the request, and with the error of `fetch` if
 * the server cannot be reached.
 */
export async function loadChat<Message>(
  options: LoadChatOptions,
): Promise<StoredChat<Message> | undefined> {
  const { apiUrl, chatId, headers, credentials, fetch = globalThis.fetch } = options;
  const response = await fetch(urlBelow(apiUrl, `/chats/${chatIdSegment(chatId)}`), {
    headers: await resolveHeaders(headers),
    ...(credentials && { credentials }),
  });
  if (response.ok) return (await response.json()) as StoredChat<Message>;
  if (response.status === 404) {
    await response.body?.cancel();
    return undefined;
  }
  throw await refusalFromResponse(response, "The chat could not be loaded.");
}

/** Calls of a tool that an earlier decision in the chat approves (A8). */
export interface Grant {
  readonly id: string;
  readonly tool: string;
  /** The names of the agents from the root to the one that calls, joined by `/`. */
  readonly agent: string;
  /** Arguments that must have these values; empty if any arguments are approved. */
  readonly where: Readonly<Record<string, unknown>>;
  /** The approval that the grant comes from. */
  readonly approvalId: string;
  readonly grantedAt: string;
  readonly expiresAt: string;
}

/**
 * Load the grants of a chat that have not expired, oldest first.
 *
 * Rejects as `loadChat` does, also for a chat that the server does not have.
 */
export async function loadGrants(options: LoadChatOptions): Promise<readonly Grant[]> {
  const response = await requestGrants(options, "", "GET");
  if (!response.ok) throw await refusalFromResponse(response, "The grants could not be loaded.");
  return ((await response.json()) as { readonly grants: Grant[] }).grants;
}

/** The options of `revokeGrant`. */
export interface RevokeGrantOptions extends LoadChatOptions {
  readonly grantId: string;
}

/** Revoke a grant: the next call that it covered requests approval. Rejects as `loadGrants`. */
export async function revokeGrant(options: RevokeGrantOptions): Promise<void> {
  const grant = `/${encodeURIComponent(options.grantId)}`;
  const response = await requestGrants(options, grant, "DELETE");
  if (!response.ok) throw await refusalFromResponse(response, "The grant could not be revoked.");
  await response.body?.cancel();
}

async function requestGrants(
  { apiUrl, chatId, headers, credentials, fetch = globalThis.fetch }: LoadChatOptions,
  path: string,
  method: "GET" | "DELETE",
): Promise<Response> {
  return fetch(urlBelow(apiUrl, `/chats/${chatIdSegment(chatId)}/grants${path}`), {
    method,
    headers: await resolveHeaders(headers),
    ...(credentials && { credentials }),
  });
}

/** The options of `stopChat`. */
export interface StopOptions {
  /** The URL of the chat route, such as `/api/chat`. */
  readonly api: string;
  readonly chatId: string;
  readonly headers?: HeaderSource;
  readonly credentials?: RequestCredentials | undefined;
  readonly fetch?: typeof fetch;
}

/**
 * Stop the running turn of a chat on the server; it is not an error if no turn is running.
 *
 * The `stop()` of a chat only disconnects from the stream while the agent continues. Call this
 * function first, then `stop()`.
 *
 * Rejects with `RequestRefused` if the server refuses the request, with the error of `fetch` if the
 * server cannot be reached, and with an `Error` for a chat id that cannot be part of a URL.
 */
export async function stopChat(options: StopOptions): Promise<void> {
  const { api, chatId, headers, credentials, fetch = globalThis.fetch } = options;
  const response = await fetch(urlBelow(api, `/${chatIdSegment(chatId)}/stop`), {
    method: "POST",
    headers: await resolveHeaders(headers),
    ...(credentials && { credentials }),
  });
  if (response.ok) {
    await response.body?.cancel();
    return;
  }
  throw await refusalFromResponse(response, "The chat could not be stopped.");
}
