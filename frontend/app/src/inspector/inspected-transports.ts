import {
  DefaultChatTransport,
  type UIMessage,
  type UIMessageChunk,
  WebSocketChatTransport,
} from "ai";
import type { SluiceChatOptions, Transports } from "sluicegate/react";
import type { WireLog } from "./log.ts";

type Send = DefaultChatTransport<UIMessage>["sendMessages"];
type SendOptions = Parameters<Send>[0];
type Chunks = Awaited<ReturnType<Send>>;

type SocketClass = NonNullable<SluiceChatOptions["webSocket"]>;

/** Sees each chunk as it comes in. */
export type HearChunk = (chunk: UIMessageChunk) => void;

function request({ chatId, messageId, messages, trigger }: SendOptions) {
  return {
    id: chatId,
    trigger,
    ...(messageId !== undefined && { messageId }),
    message: messages.at(-1),
  };
}

/** The AI SDK's own transports, with everything that passes written into a log. */
export function inspectedTransports(log: WireLog, hear: HearChunk): Transports<UIMessage> {
  const seen = (chunks: Chunks): Chunks =>
    chunks.pipeThrough(
      new TransformStream<UIMessageChunk, UIMessageChunk>({
        transform(chunk, controller) {
          log.add("server", "chunk", chunk);
          hear(chunk);
          controller.enqueue(chunk);
        },
      }),
    );
  const sent = (options: SendOptions) => {
    // A message of the user begins an exchange; everything else goes on with one.
    if (options.messages.at(-1)?.role === "user") log.clear();
    log.begin(request(options));
  };
  const resumed = (chatId: string) => {
    log.clear();
    log.begin({ id: chatId, trigger: "resume-stream" });
  };

  class Sse extends DefaultChatTransport<UIMessage> {
    override async sendMessages(options: SendOptions): Promise<Chunks> {
      sent(options);
      return seen(await super.sendMessages(options));
    }
    override async reconnectToStream(options: { chatId: string }): Promise<Chunks | null> {
      const chunks = await super.reconnectToStream(options);
      if (chunks !== null) resumed(options.chatId);
      return chunks && seen(chunks);
    }
  }

  class Socket extends WebSocketChatTransport<UIMessage> {
    override async sendMessages(options: SendOptions): Promise<Chunks> {
      sent(options);
      return seen(await super.sendMessages(options));
    }
    override async reconnectToStream(options: { chatId: string }): Promise<Chunks | null> {
      const chunks = await super.reconnectToStream(options);
      if (chunks !== null) resumed(options.chatId);
      return chunks && seen(chunks);
    }
  }

  return { DefaultChatTransport: Sse, WebSocketChatTransport: Socket } as Transports<UIMessage>;
}

/** Sockets whose frames are written into a log; their chunks are written by the transport. */
export function inspectedSockets(log: WireLog): SocketClass {
  const note = (dir: "client" | "server", data: unknown) => {
    if (typeof data !== "string" || data.startsWith('{"type":"chunk"')) return;
    try {
      const frame = JSON.parse(data) as { type?: unknown };
      // The request itself is in the log already, without the history around it.
      if (frame.type !== "send" && frame.type !== "heartbeat") log.add(dir, "frame", frame);
    } catch {
      log.add(dir, "frame", data);
    }
  };
  return class extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      this.addEventListener("message", ({ data }) => note("server", data));
    }
    override send(data: Parameters<WebSocket["send"]>[0]): void {
      note("client", data);
      super.send(data);
    }
  };
}
