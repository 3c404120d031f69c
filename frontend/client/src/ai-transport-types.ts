import type { ChatTransport, UIMessage } from "ai";

/** The options of `sendMessages` of an AI SDK transport. */
export type SendMessagesOptions<Message extends UIMessage> = Parameters<
  ChatTransport<Message>["sendMessages"]
>[0];

/** The options of `reconnectToStream` of an AI SDK transport. */
export type ReconnectToStreamOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];

/** The stream of chunks that an AI SDK transport returns. */
export type ChunkStream = Awaited<ReturnType<ChatTransport<UIMessage>["sendMessages"]>>;
