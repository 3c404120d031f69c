import {
  type ChatTransport,
  DefaultChatTransport,
  type UIMessage,
  type UIMessageChunk,
  WebSocketChatTransport,
} from "ai";
import type { SluiceChatOptions, Transports } from "sluicegate/react";
import type { PostBody, WireRecorder } from "./wire-log.ts";

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type ChunkStream = ReadableStream<UIMessageChunk>;
type SocketClass = NonNullable<SluiceChatOptions["webSocket"]>;

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
 * Create a function to await between two chunks. Buffered chunks are read without a pause between
 * them; the function yields to the main thread when they have occupied it for too long.
 */
function createYield(): () => Promise<void> | undefined {
  let taskStart = performance.now();
  return () => {
    if (performance.now() - taskStart < MAX_TASK_DURATION) return;
    return nextTask().then(() => {
      taskStart = performance.now();
    });
  };
}

function recordChunks(chunks: ChunkStream, recorder: WireRecorder): ChunkStream {
  const yieldToMain = createYield();
  return chunks.pipeThrough(
    new TransformStream<UIMessageChunk, UIMessageChunk>({
      async transform(chunk, controller) {
        recorder.chunk(chunk);
        controller.enqueue(chunk);
        await yieldToMain();
      },
    }),
  );
}

function recordResume(
  chunks: ChunkStream | null,
  chatId: string,
  recorder: WireRecorder,
): ChunkStream | null {
  if (chunks === null) return null;
  recorder.resume(chatId);
  return recordChunks(chunks, recorder);
}

/** The AI SDK's transports, whose requests and chunks are recorded. */
export function createRecordingTransports(recorder: WireRecorder): Transports<UIMessage> {
  class RecordedSseTransport extends DefaultChatTransport<UIMessage> {
    override async sendMessages(options: SendOptions) {
      return recordChunks(await super.sendMessages(options), recorder);
    }
    override async reconnectToStream(options: ResumeOptions) {
      return recordResume(await super.reconnectToStream(options), options.chatId, recorder);
    }
  }
  class RecordedWebSocketTransport extends WebSocketChatTransport<UIMessage> {
    override async sendMessages(options: SendOptions) {
      return recordChunks(await super.sendMessages(options), recorder);
    }
    override async reconnectToStream(options: ResumeOptions) {
      return recordResume(await super.reconnectToStream(options), options.chatId, recorder);
    }
  }
  return {
    DefaultChatTransport: RecordedSseTransport,
    WebSocketChatTransport: RecordedWebSocketTransport,
  } as Transports<UIMessage>;
}

/** The browser's `fetch`, whose `POST /chat` requests are recorded. */
export function createRecordedFetch(recorder: WireRecorder): typeof fetch {
  return (url, init) => {
    const { pathname } = new URL(String(url), location.href);
    if (init?.method === "POST" && pathname.endsWith("/chat")) {
      recorder.send(JSON.parse(String(init.body)));
    }
    return fetch(url, init);
  };
}

/** The live route: its chunks do not pass through a recorded transport of the AI SDK. */
const LIVE_URL = /\/live(?:\?|$)/;

function parseFrame(data: string): Record<string, unknown> {
  try {
    return JSON.parse(data) as Record<string, unknown>;
  } catch {
    return { text: data };
  }
}

/** A WebSocket class whose frames are recorded, except chunks that a transport records. */
export function createRecordedSocket(recorder: WireRecorder): SocketClass {
  const record = (isLive: boolean, dir: "client" | "server", data: unknown) => {
    if (typeof data !== "string" || (!isLive && data.startsWith('{"type":"chunk"'))) return;
    const frame = parseFrame(data);
    switch (frame.type) {
      case "heartbeat":
        return;
      case "send":
        recorder.send({ ...frame, ...(frame.body as object) } as unknown as PostBody);
        return;
      case "chunk":
        recorder.chunk(frame.chunk as UIMessageChunk);
        return;
      default:
        recorder.frame(dir, frame);
    }
  };
  return class extends WebSocket {
    readonly #isLive: boolean;

    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      this.#isLive = LIVE_URL.test(String(url));
      this.addEventListener("message", ({ data }) => record(this.#isLive, "server", data));
    }

    override send(data: Parameters<WebSocket["send"]>[0]): void {
      record(this.#isLive, "client", data);
      super.send(data);
    }
  };
}
