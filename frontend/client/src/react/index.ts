export type { ApproveOptions, Refusal } from "./chat-session.ts";
export type {
  ConnectionOptions,
  SluiceChatOptions,
  TransportKind,
  Transports,
} from "./options.ts";
export { type SluiceChat, useSluiceChat, type VoiceControls } from "./use-sluice-chat.ts";
