import {
  type ChatTransport,
  DefaultChatTransport,
  type UIMessage,
  type UIMessageChunk,
  WebSocketChatTransport,
} from "ai";
import type { Transports } from "sluicegate/react";

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type ChunkStream = ReadableStream<UIMessageChunk>;

/** Milliseconds for which buffered chunks may occupy the main thread without a pause. */
const MAX_TASK_DURATION = 10;

/** Resolves in a new task, after other tasks that are already queued. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/**
 * The same chunks. Buffered chunks are read without a pause between them; the stream yields to the
 * main thread when they have occupied it for too long.
 */
function yielding(chunks: ChunkStream): ChunkStream {
  let taskStart = performance.now();
  return chunks.pipeThrough(
    new TransformStream<UIMessageChunk, UIMessageChunk>({
      async transform(chunk, controller) {
        controller.enqueue(chunk);
        if (performance.now() - taskStart < MAX_TASK_DURATION) return;
        await nextTask();
        taskStart = performance.now();
      },
    }),
  );
}

function yieldingResumed(chunks: ChunkStream | null): ChunkStream | null {
  return chunks === null ? null : yielding(chunks);
}

class PacedSseTransport extends DefaultChatTransport<UIMessage> {
  override async sendMessages(options: SendOptions) {
    return yielding(await super.sendMessages(options));
  }
  override async reconnectToStream(options: ResumeOptions) {
    return yieldingResumed(await super.reconnectToStream(options));
  }
}

class PacedWebSocketTransport extends WebSocketChatTransport<UIMessage> {
  override async sendMessages(options: SendOptions) {
    return yielding(await super.sendMessages(options));
  }
  override async reconnectToStream(options: ResumeOptions) {
    return yieldingResumed(await super.reconnectToStream(options));
  }
}

/** The AI SDK's transports, with chunks that leave the main thread time to render. */
export const YIELDING_TRANSPORTS = {
  DefaultChatTransport: PacedSseTransport,
  WebSocketChatTransport: PacedWebSocketTransport,
} as Transports<UIMessage>;
