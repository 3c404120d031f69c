/**
 * The transport over a WebSocket, for AI SDK 7.
 * @module sluicegate/websocket
 */

import { urlBelow } from "./chat-api.ts";
import type { SocketClass } from "./socket-class.ts";
import { type TransportInit, type TransportOptions, transportInit } from "./transport-options.ts";

/** Query parameters of a socket's handshake; a function is called for each connection. */
export type SocketParams = Record<string, string> | (() => Record<string, string>);

/** The options of `createWebSocketTransport`. */
export interface WebSocketOptions<Transport> extends TransportOptions {
  /** The caller's `ai`, or an object with its transport. */
  readonly ai: { readonly WebSocketChatTransport?: new (options: WebSocketInit) => Transport };
  readonly protocols?: string | string[] | undefined;
  readonly params?: SocketParams | undefined;
  /** The WebSocket class; defaults to the platform's. */
  readonly webSocket?: SocketClass | undefined;
}

/** The constructor options of the AI SDK's `WebSocketChatTransport`. */
export interface WebSocketInit extends TransportInit {
  url: string;
  protocols?: string | string[];
  params?: SocketParams;
  /** Assignable to the AI SDK's own type of this option in every version. */
  webSocket?: new (
    ...args: unknown[]
  ) => never;
}

/**
 * Create the `WebSocketChatTransport` of AI SDK 7: one socket for all chats, with the major version
 * and the release policy in the headers of each frame.
 *
 * Throws an `Error` on AI SDK 6, which has no such transport.
 */
export function createWebSocketTransport<Transport>(
  options: WebSocketOptions<Transport>,
): Transport {
  const { ai, api, protocols, params, webSocket } = options;
  if (ai.WebSocketChatTransport === undefined) {
    throw new Error(
      'The WebSocket transport needs AI SDK 7.0.138 or newer; use kind: "sse" or "bidi".',
    );
  }
  return new ai.WebSocketChatTransport({
    ...transportInit(options, () => 7),
    url: urlBelow(api, "/ws"),
    ...(protocols && { protocols }),
    ...(params && { params }),
    ...(webSocket && { webSocket: webSocket as new (...args: unknown[]) => never }),
  });
}
