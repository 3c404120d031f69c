export {
  type Levels,
  type SpokenTurn,
  Voice,
  type VoiceOptions,
  type VoiceState,
} from "./audio/voice.ts";
export { BidiChatTransport, type BidiOptions } from "./bidi/bidi-transport.ts";
export type { LiveEvents, LiveFrame } from "./bidi/live-events.ts";
export type { Patience } from "./bidi/socket.ts";
export {
  type BidiChatOptions,
  createChatTransport,
  type Major,
  type Release,
  type SseInit,
  type SseOptions,
  type WebSocketInit,
  type WebSocketOptions,
} from "./chat-transport.ts";
export type { Approval, ChatMessage, MessagePart, SendRule } from "./messages.ts";
export { type PendingApproval, pendingApprovals } from "./pending-approvals.ts";
export { type PlayerOptions, PlayerTransport } from "./player-transport.ts";
export { type StopOptions, stopChat } from "./real-stop.ts";
export { RequestRefused } from "./refusals.ts";
export type { HeaderSource } from "./requests.ts";
export { s2Bidi, s2BidiLiteral, s2Sse, s2SseLiteral } from "./s2-rules.ts";
export {
  type SafeSendRule,
  type SendAutomaticallyOptions,
  sendAutomaticallyWhen,
} from "./send-automatically.ts";
