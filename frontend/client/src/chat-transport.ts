import type { UIMessage } from "ai";
import { BidiChatTransport } from "./bidi/bidi-transport.ts";
import type { Patience } from "./bidi/socket.ts";
import type { SocketClass } from "./refusals.ts";
import { below, beside, type HeaderSource, resolveHeaders } from "./requests.ts";
import { loadChat } from "./stored-chat.ts";

/** The AI SDK's major, which decides the chunks that the server may use. */
export type Major = 6 | 7;

/**
 * How the server is to release texts and results while approvals wait (S2-R30): after the last one,
 * the same with a first look at plain answers (AI SDK 7), or as they come.
 */
export type Release = "deferred" | "preview" | "progressive";

/** What every kind of transport takes. */
interface CommonOptions {
  /** The address of the chat, such as `/api/chat`, for every kind. */
  readonly api: string;
  /** The major of the `ai` that is handed in. */
  readonly major: Major;
  /** Left out, the server's own setting holds. */
  readonly release?: Release;
  /** Further headers, sent with each request; on a socket, with each frame. */
  readonly headers?: HeaderSource;
  /** Further properties of the body; a function is asked for each request. */
  readonly body?: object | (() => object | Promise<object>);
}

/** Server-sent events over `fetch`, by the AI SDK's `DefaultChatTransport`. */
export interface SseOptions<Transport> extends CommonOptions {
  readonly kind: "sse";
  /** The caller's `ai`, or an object with its transports. */
  readonly ai: { readonly DefaultChatTransport: new (options: SseInit) => Transport };
  readonly fetch?: typeof fetch;
  readonly credentials?: RequestCredentials;
}

/** One socket for all chats, by the `WebSocketChatTransport` of AI SDK 7. */
export interface WebSocketOptions<Transport> extends CommonOptions {
  readonly kind: "websocket";
  /** The caller's `ai`, or an object with its transports. */
  readonly ai: { readonly WebSocketChatTransport?: new (options: WebSocketInit) => Transport };
  readonly protocols?: string | string[];
  /** Query parameters of the handshake, asked for at each connection. */
  readonly params?: Record<string, string> | (() => Record<string, string>);
  /** The class that opens sockets, where the platform's own is not to be used. */
  readonly webSocket?: SocketClass;
}

/** One socket by `BidiChatTransport`, for AI SDK 6 and 7: it connects again, and it can carry voice. */
export interface BidiChatOptions extends CommonOptions {
  readonly kind: "bidi";
  /** The chat to speak in, over the address `live` beside `api`; without it there is text alone. */
  readonly live?: { readonly chatId: string };
  /** Query parameters of the handshake, asked for at each connection. */
  readonly params?: Record<string, string> | (() => Record<string, string>);
  /** The class that opens sockets, where the platform's own is not to be used. */
  readonly webSocket?: SocketClass;
  /** Loads what was answered while there was no connection. */
  readonly fetch?: typeof fetch;
  readonly credentials?: RequestCredentials;
  /** How long to wait for what. */
  readonly patience?: Partial<Patience>;
}

/** The subprotocol with audio in binary frames. */
const LIVE_PROTOCOL = "sluicegate.live.v1";

type Init = {
  headers: () => Promise<Record<string, string>>;
  body?: object | (() => object | Promise<object>);
};

/** What the AI SDK's `DefaultChatTransport` is made with. */
export type SseInit = Init & {
  api: string;
  fetch?: typeof fetch;
  credentials?: RequestCredentials;
};

/** What the AI SDK's `WebSocketChatTransport` is made with. */
export type WebSocketInit = Init & {
  url: string;
  protocols?: string | string[];
  params?: Record<string, string> | (() => Record<string, string>);
  /** The AI SDK has a type of its own for such a class; this one fits it whatever it is. */
  webSocket?: new (
    ...given: unknown[]
  ) => never;
};

function common({ major, release, headers, body }: CommonOptions): Init {
  const own = { "x-ai-sdk": String(major), ...(release && { "x-release": release }) };
  return {
    headers: async () => ({ ...(await resolveHeaders(headers)), ...own }),
    ...(body && { body }),
  };
}

function overSse<Transport>(options: SseOptions<Transport>): Transport {
  const { ai, api, fetch, credentials } = options;
  return new ai.DefaultChatTransport({
    ...common(options),
    api,
    ...(fetch && { fetch }),
    ...(credentials && { credentials }),
  });
}

function overWebSocket<Transport>(options: WebSocketOptions<Transport>): Transport {
  const { ai, api, major, protocols, params, webSocket } = options;
  if (major === 6 || ai.WebSocketChatTransport === undefined) {
    throw new Error(
      'The WebSocket transport needs AI SDK 7.0.138 or newer; use kind: "sse" or "bidi".',
    );
  }
  return new ai.WebSocketChatTransport({
    ...common(options),
    url: below(api, "/ws"),
    ...(protocols && { protocols }),
    ...(params && { params }),
    ...(webSocket && { webSocket: webSocket as new (...given: unknown[]) => never }),
  });
}

function overBidi<Message extends UIMessage>(options: BidiChatOptions): BidiChatTransport<Message> {
  const { api, major, live, params, webSocket, fetch, credentials, patience } = options;
  const { headers, body } = common(options);
  const apiUrl = beside(api, "");
  const given = () => (typeof params === "function" ? params() : params);
  return new BidiChatTransport<Message>({
    url: live ? beside(api, "/live") : below(api, "/ws"),
    major,
    headers,
    body,
    webSocket,
    patience,
    stored: (chatId) => loadChat({ apiUrl, chatId, headers, credentials, fetch }),
    ...(live && { protocols: [LIVE_PROTOCOL] }),
    params: () => ({ ...given(), ...(live && { chat: live.chatId }) }),
  });
}

/**
 * A transport that tells the server which chunks and which release this client wants: the AI SDK's
 * own for `sse` and `websocket`, a `BidiChatTransport` for `bidi`.
 *
 * Throws an `Error` if a WebSocket is asked for on AI SDK 6, which brings no transport for it.
 */
export function createChatTransport<Transport>(options: SseOptions<Transport>): Transport;
export function createChatTransport<Transport>(options: WebSocketOptions<Transport>): Transport;
export function createChatTransport<Message extends UIMessage>(
  options: BidiChatOptions,
): BidiChatTransport<Message>;
export function createChatTransport<Transport>(
  options: SseOptions<Transport> | WebSocketOptions<Transport> | BidiChatOptions,
): Transport | BidiChatTransport {
  switch (options.kind) {
    case "sse":
      return overSse(options);
    case "websocket":
      return overWebSocket(options);
    case "bidi":
      return overBidi(options);
  }
}
