import type { UIMessage } from "ai";
import { BidiChatTransport } from "./bidi/bidi-transport.ts";
import type { ReconnectOptions } from "./bidi/reconnecting-socket.ts";
import { type HeaderSource, loadChat, resolveHeaders, urlBelow, urlBeside } from "./chat-api.ts";
import type { SocketClass } from "./refusals.ts";

/** The major version of the AI SDK; it determines the chunk types that the server may send. */
export type Major = 6 | 7;

/**
 * The release policy for text and results while approvals are pending (S2-R30): `deferred` until the
 * last decision, `preview` the same with text streamed until the first tool call (AI SDK 7), or
 * `progressive` as they are produced.
 */
export type Release = "deferred" | "preview" | "progressive";

/** The options of every kind of transport. */
interface CommonOptions {
  /** The URL of the chat route, such as `/api/chat`, for every kind. */
  readonly api: string;
  /** The major version of the caller's `ai`. */
  readonly major: Major;
  /** Defaults to the server's setting. */
  readonly release?: Release;
  /** Additional headers of each request; on a socket, of each frame. */
  readonly headers?: HeaderSource;
  /** Additional properties of the body; a function is called for each request. */
  readonly body?: object | (() => object | Promise<object>);
}

/** Server-sent events over `fetch`, with the AI SDK's `DefaultChatTransport`. */
export interface SseOptions<Transport> extends CommonOptions {
  readonly kind: "sse";
  /** The caller's `ai`, or an object with its transports. */
  readonly ai: { readonly DefaultChatTransport: new (options: SseInit) => Transport };
  readonly fetch?: typeof fetch;
  readonly credentials?: RequestCredentials;
}

/** One socket for all chats, with the `WebSocketChatTransport` of AI SDK 7. */
export interface WebSocketOptions<Transport> extends CommonOptions {
  readonly kind: "websocket";
  /** The caller's `ai`, or an object with its transports. */
  readonly ai: { readonly WebSocketChatTransport?: new (options: WebSocketInit) => Transport };
  readonly protocols?: string | string[];
  /** Query parameters of the handshake; a function is called for each connection. */
  readonly params?: Record<string, string> | (() => Record<string, string>);
  /** The WebSocket class; defaults to the platform's. */
  readonly webSocket?: SocketClass;
}

/** One reconnecting socket with `BidiChatTransport`, for AI SDK 6 and 7; it can carry voice. */
export interface BidiOptions extends CommonOptions {
  readonly kind: "bidi";
  /** The chat to connect to over the `live` route beside `api`; if undefined, text only. */
  readonly live?: { readonly chatId: string };
  /** Query parameters of the handshake; a function is called for each connection. */
  readonly params?: Record<string, string> | (() => Record<string, string>);
  /** The WebSocket class; defaults to the platform's. */
  readonly webSocket?: SocketClass;
  /** Loads the chat to recover responses that ended without a connection. */
  readonly fetch?: typeof fetch;
  readonly credentials?: RequestCredentials;
  readonly reconnect?: Partial<ReconnectOptions>;
}

/** The WebSocket subprotocol with audio in binary frames. */
const LIVE_PROTOCOL = "sluicegate.live.v1";

type Init = {
  headers: () => Promise<Record<string, string>>;
  body?: object | (() => object | Promise<object>);
};

/** The constructor options of the AI SDK's `DefaultChatTransport`. */
export type SseInit = Init & {
  api: string;
  fetch?: typeof fetch;
  credentials?: RequestCredentials;
};

/** The constructor options of the AI SDK's `WebSocketChatTransport`. */
export type WebSocketInit = Init & {
  url: string;
  protocols?: string | string[];
  params?: Record<string, string> | (() => Record<string, string>);
  /** Assignable to the AI SDK's own type of this option in every version. */
  webSocket?: new (
    ...args: unknown[]
  ) => never;
};

function commonInit({ major, release, headers, body }: CommonOptions): Init {
  const own = { "x-ai-sdk": String(major), ...(release && { "x-release": release }) };
  return {
    headers: async () => ({ ...(await resolveHeaders(headers)), ...own }),
    ...(body && { body }),
  };
}

function createSseTransport<Transport>(options: SseOptions<Transport>): Transport {
  const { ai, api, fetch, credentials } = options;
  return new ai.DefaultChatTransport({
    ...commonInit(options),
    api,
    ...(fetch && { fetch }),
    ...(credentials && { credentials }),
  });
}

function createWebSocketTransport<Transport>(options: WebSocketOptions<Transport>): Transport {
  const { ai, api, major, protocols, params, webSocket } = options;
  if (major === 6 || ai.WebSocketChatTransport === undefined) {
    throw new Error(
      'The WebSocket transport needs AI SDK 7.0.138 or newer; use kind: "sse" or "bidi".',
    );
  }
  return new ai.WebSocketChatTransport({
    ...commonInit(options),
    url: urlBelow(api, "/ws"),
    ...(protocols && { protocols }),
    ...(params && { params }),
    ...(webSocket && { webSocket: webSocket as new (...args: unknown[]) => never }),
  });
}

function createBidiTransport<Message extends UIMessage>(
  options: BidiOptions,
): BidiChatTransport<Message> {
  const { api, major, live, params, webSocket, fetch, credentials, reconnect } = options;
  const { headers, body } = commonInit(options);
  const apiUrl = urlBeside(api, "");
  const resolveParams = () => (typeof params === "function" ? params() : params);
  return new BidiChatTransport<Message>({
    url: live ? urlBeside(api, "/live") : urlBelow(api, "/ws"),
    major,
    headers,
    body,
    webSocket,
    reconnect,
    loadChat: (chatId) => loadChat({ apiUrl, chatId, headers, credentials, fetch }),
    ...(live && { protocols: [LIVE_PROTOCOL] }),
    params: () => ({ ...resolveParams(), ...(live && { chat: live.chatId }) }),
  });
}

/**
 * Create a transport that sends the major version and the release policy in the headers `x-ai-sdk`
 * and `x-release`: the AI SDK's own for `sse` and `websocket`, a `BidiChatTransport` for `bidi`.
 *
 * Throws an `Error` for kind `websocket` on AI SDK 6, which has no such transport.
 */
export function createChatTransport<Transport>(options: SseOptions<Transport>): Transport;
export function createChatTransport<Transport>(options: WebSocketOptions<Transport>): Transport;
export function createChatTransport<Message extends UIMessage>(
  options: BidiOptions,
): BidiChatTransport<Message>;
export function createChatTransport<Transport>(
  options: SseOptions<Transport> | WebSocketOptions<Transport> | BidiOptions,
): Transport | BidiChatTransport {
  switch (options.kind) {
    case "sse":
      return createSseTransport(options);
    case "websocket":
      return createWebSocketTransport(options);
    case "bidi":
      return createBidiTransport(options);
  }
}
