import type { UIMessage } from "ai";
import { loadChat, urlBelow, urlBeside } from "../chat-api.ts";
import type { SocketClass } from "../socket-class.ts";
import { type TransportOptions, transportInit } from "../transport-options.ts";
import type { SocketParams } from "../websocket.ts";
import { BidiChatTransport, type MajorSource } from "./bidi-transport.ts";
import type { ReconnectOptions } from "./reconnecting-socket.ts";

/** The options of `createBidiTransport`. */
export interface BidiOptions extends TransportOptions {
  /** The major version of the caller's `ai`; a function is called when it is first needed. */
  readonly major: MajorSource;
  /** The chat to connect to over the `live` route beside `api`; if undefined, text only. */
  readonly live?: { readonly chatId: string };
  readonly params?: SocketParams | undefined;
  /** The WebSocket class; defaults to the platform's. */
  readonly webSocket?: SocketClass | undefined;
  /** Loads the chat to recover responses that ended without a connection. */
  readonly fetch?: typeof fetch;
  readonly credentials?: RequestCredentials | undefined;
  readonly reconnect?: Partial<ReconnectOptions> | undefined;
}

/** The WebSocket subprotocol with audio in binary frames. */
const LIVE_PROTOCOL = "sluicegate.live.v1";

/** Create a `BidiChatTransport`: one reconnecting socket, for AI SDK 6 and 7; it can carry voice. */
export function createBidiTransport<Message extends UIMessage>(
  options: BidiOptions,
): BidiChatTransport<Message> {
  const { api, major, live, params, webSocket, fetch, credentials, reconnect } = options;
  const { headers, body } = transportInit(options, () =>
    typeof major === "function" ? major() : major,
  );
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
    ...(live && { protocols: [LIVE_PROTOCOL], takesOver: true }),
    params: () => ({ ...resolveParams(), ...(live && { chat: live.chatId }) }),
  });
}
