/**
 * The transport over one reconnecting socket; on `/live` it also carries audio in both directions.
 * @module sluicegate/bidi
 */

export {
  BidiChatTransport,
  type BidiChatTransportOptions,
  type MajorSource,
} from "./bidi-transport.ts";
export { type BidiOptions, createBidiTransport } from "./create-bidi-transport.ts";
export type { LiveEvents, LiveFrame } from "./live-events.ts";
export type { ReconnectOptions } from "./reconnecting-socket.ts";
