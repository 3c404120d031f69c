/**
 * The rule for sending automatically, pending approvals, stop, stored chats and grants.
 * @module sluicegate
 */

export type {
  ChunkStream,
  ReconnectToStreamOptions,
  SendMessagesOptions,
} from "./ai-transport-types.ts";
export {
  type Grant,
  type HeaderSource,
  type HeadersValue,
  type LoadChatOptions,
  loadChat,
  loadGrants,
  type RevokeGrantOptions,
  revokeGrant,
  type StopOptions,
  type StoredChat,
  stopChat,
} from "./chat-api.ts";
export type { ClientTool, ClientToolCall, ClientTools } from "./client-tool-executor.ts";
export type { Major } from "./installed-major.ts";
export type { Approval, ChatMessage, MessagePart } from "./message-parts.ts";
export {
  type ApprovalDescriptor,
  approvalDescriptor,
  type DefinitionChange,
  type PendingApproval,
  pendingApprovals,
} from "./pending-approvals.ts";
export { RequestRefused } from "./refusals.ts";
export {
  type SafeSendRule,
  type SendAutomaticallyOptions,
  type SendRule,
  sendAutomaticallyWhen,
} from "./send-automatically.ts";
export { s2Bidi, s2Sse } from "./sequential-send-rules.ts";
export type { SocketClass } from "./socket-class.ts";
export type { Remember, StagedDecision } from "./staged-decision-extras.ts";
export type { Release, TransportInit, TransportOptions } from "./transport-options.ts";
