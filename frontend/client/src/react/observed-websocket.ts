import type { ChatTransport, UIMessage } from "ai";
import { failIdleSockets, type SocketClass, SocketRefusals } from "../socket-failures.ts";
import { createWebSocketTransport, type WebSocketOptions } from "../websocket.ts";

/** The options of the stock transport with the WebSocket class that is observed. */
export type ObservedWebSocketOptions<Message extends UIMessage> = WebSocketOptions<
  ChatTransport<Message>
> & { readonly webSocket: SocketClass };

/** The stock transport, whose sockets fail when they are silent, and the error codes it drops. */
export function createObservedWebSocket<Message extends UIMessage>(
  options: ObservedWebSocketOptions<Message>,
): { readonly transport: ChatTransport<Message>; readonly refusals: SocketRefusals } {
  const refusals = new SocketRefusals();
  const webSocket = refusals.observe(failIdleSockets(options.webSocket));
  return { transport: createWebSocketTransport({ ...options, webSocket }), refusals };
}
