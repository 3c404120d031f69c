import {
  type ChatTransport,
  DefaultChatTransport,
  type UIMessage,
  type UIMessageChunk,
  WebSocketChatTransport,
} from "ai";
import type { Transports } from "sluicegate/react";
import { breath } from "./breath.ts";
import type { Inspection } from "./inspection.ts";

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type Chunks = ReadableStream<UIMessageChunk>;

function seen(chunks: Chunks, inspection: Inspection): Chunks {
  const breathe = breath();
  return chunks.pipeThrough(
    new TransformStream<UIMessageChunk, UIMessageChunk>({
      async transform(chunk, controller) {
        inspection.chunk(chunk);
        controller.enqueue(chunk);
        await breathe();
      },
    }),
  );
}

function resumed(chunks: Chunks | null, id: string, inspection: Inspection): Chunks | null {
  if (chunks === null) return null;
  inspection.resume(id);
  return seen(chunks, inspection);
}

/** The AI SDK's own transports, with everything that passes written down. */
export function inspectedTransports(inspection: Inspection): Transports<UIMessage> {
  class Sse extends DefaultChatTransport<UIMessage> {
    override async sendMessages(options: SendOptions) {
      return seen(await super.sendMessages(options), inspection);
    }
    override async reconnectToStream(options: ResumeOptions) {
      return resumed(await super.reconnectToStream(options), options.chatId, inspection);
    }
  }
  class Socket extends WebSocketChatTransport<UIMessage> {
    override async sendMessages(options: SendOptions) {
      return seen(await super.sendMessages(options), inspection);
    }
    override async reconnectToStream(options: ResumeOptions) {
      return resumed(await super.reconnectToStream(options), options.chatId, inspection);
    }
  }
  return { DefaultChatTransport: Sse, WebSocketChatTransport: Socket } as Transports<UIMessage>;
}
