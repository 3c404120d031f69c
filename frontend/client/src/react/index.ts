/**
 * A chat with approvals, transports and voice as a React hook.
 * @module sluicegate/react
 */

export type { ApproveOptions, Refusal } from "./chat-session.ts";
export type {
  ConnectionOptions,
  SluiceChatOptions,
  TransportKind,
  Transports,
} from "./options.ts";
export { type SluiceChat, useSluiceChat, type VoiceControls } from "./use-sluice-chat.ts";
