/**
 * The literal S2 rules, assertions on responses, and a transport that replays recordings.
 * @module sluicegate/testing
 */

export type { Approval, ChatMessage, MessagePart, SendRule } from "./messages.ts";
export { type PlayerOptions, PlayerTransport } from "./player-transport.ts";
export {
  assertFinalResponse,
  assertIntermediateResponse,
  type ResponseChunk,
  S2Violation,
} from "./s2-assertions.ts";
export { s2BidiLiteral, s2SseLiteral } from "./s2-rules.ts";
