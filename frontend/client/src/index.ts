export {
  type ApprovalDescriptor,
  approvalDescriptor,
  type DefinitionChange,
  type PendingApproval,
  pendingApprovals,
  type Remember,
} from "./approvals.ts";
export {
  type Levels,
  type SpokenTurn,
  Voice,
  type VoiceOptions,
  type VoiceState,
} from "./audio/voice.ts";
export { BidiChatTransport, type BidiChatTransportOptions } from "./bidi/bidi-transport.ts";
export type { LiveEvents, LiveFrame } from "./bidi/live-events.ts";
export type { ReconnectOptions } from "./bidi/reconnecting-socket.ts";
export {
  type Grant,
  type HeaderSource,
  type LoadChatOptions,
  loadGrants,
  revokeGrant,
  type StopOptions,
  stopChat,
} from "./chat-api.ts";
export {
  type BidiOptions,
  createChatTransport,
  type Major,
  type Release,
  type SseInit,
  type SseOptions,
  type WebSocketInit,
  type WebSocketOptions,
} from "./chat-transport.ts";
export type { Approval, ChatMessage, MessagePart, SendRule } from "./messages.ts";
export { type PlayerOptions, PlayerTransport } from "./player-transport.ts";
export { RequestRefused } from "./refusals.ts";
export {
  type SafeSendRule,
  type SendAutomaticallyOptions,
  s2Bidi,
  s2BidiLiteral,
  s2Sse,
  s2SseLiteral,
  sendAutomaticallyWhen,
} from "./send-automatically.ts";
