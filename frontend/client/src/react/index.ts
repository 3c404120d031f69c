export type { ApproveOptions, Refusal } from "./chat-session.ts";
export type {
  ConnectionOptions,
  SluiceChatOptions,
  TransportKind,
  Transports,
} from "./options.ts";
export { type SluiceChat, useSluiceChat } from "./use-sluice-chat.ts";
