/**
 * A test kit: scripted servers and sockets, the checker of the rules of the wire, the literal S2
 * rules and assertions, and a transport that replays recordings.
 * @module sluicegate/testing
 */

export type { Approval, ChatMessage, MessagePart } from "../message-parts.ts";
export type { SendRule } from "../send-automatically.ts";
export { s2Bidi, s2BidiLiteral, s2Sse, s2SseLiteral } from "../sequential-send-rules.ts";
export type { SocketClass } from "../socket-class.ts";
export {
  ANSWER,
  approvalRequest,
  type Chunk,
  type ChunkGroups,
  call,
  confirmation,
  denial,
  failedTurn,
  gatedCall,
  output,
  outputError,
  progressDone,
  type ResponseChunks,
  STEP,
  STEP_END,
  serverCall,
  step,
  text,
  turn,
  waitingTurn,
} from "./chunks.ts";
export { type Exchange, type Release, ruleFaults } from "./exchange-chunk-rules.ts";
export { RecordingFetch } from "./recording-fetch.ts";
export { type PlayerOptions, PlayerTransport } from "./replay-transport.ts";
export {
  ControlledStream,
  type Responder,
  refusal,
  ScriptedServer,
  type ServerRequest,
  scriptedFetch,
  sseResponse,
  storedChat,
  streamOf,
} from "./scripted-server.ts";
export { type Frame, ScriptedSocket, ScriptedSockets } from "./scripted-sockets.ts";
export {
  assertFinalResponse,
  assertIntermediateResponse,
  type ResponseChunk,
  S2Violation,
} from "./sequential-response-assertions.ts";
export { type TurnContext, turnFaults } from "./turn-chunk-rules.ts";
