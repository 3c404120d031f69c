import type { ReconnectOptions } from "../../../frontend/client/src/bidi/reconnecting-socket.ts";
import { createChatTransport } from "../../../frontend/client/src/chat-transport.ts";
import * as ai6 from "../clients/ai-6/client.ts";
import * as ai6Floor from "../clients/ai-6-floor/client.ts";
import * as ai7 from "../clients/ai-7/client.ts";
import * as ai7Floor from "../clients/ai-7-floor/client.ts";
import type { Message } from "./messages.ts";
import type { Predicate } from "./predicates.ts";

export type Version = "6" | "6-floor" | "7" | "7-floor";

export type Status = "submitted" | "streaming" | "ready" | "error";

/**
 * The stock socket transport, which AI SDK 7 alone brings, or the client package's own: over the
 * same socket, or over the one on which a chat may also be spoken.
 */
export type SocketTransport = "websocket" | "bidi" | "live";

/** What the stories use of the AI SDK's `Chat`; its real types differ between the majors. */
export interface ChatLike {
  readonly id: string;
  messages: Message[];
  readonly status: Status;
  readonly error: Error | undefined;
  sendMessage(message?: { text: string }): Promise<void>;
  addToolApprovalResponse(answer: {
    id: string;
    approved: boolean;
    reason?: string;
  }): PromiseLike<void> | void;
  addToolOutput(output: {
    tool: string;
    toolCallId: string;
    output: unknown;
  }): PromiseLike<void> | void;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
  "~registerMessagesCallback"(changed: () => void): () => void;
  "~registerStatusCallback"(changed: () => void): () => void;
}

export interface ChatOptions {
  readonly id: string;
  readonly api: string;
  readonly headers: Record<string, string>;
  /** Asked for further properties of each request's body. */
  readonly body: () => object;
  readonly fetch: typeof fetch;
  /** A transport over a socket in place of the one over HTTP. */
  readonly transport?: SocketTransport;
  /** What that opens its sockets with. */
  readonly webSocket?: typeof WebSocket;
  /** How long the client package's transport waits for what. */
  readonly reconnect?: Partial<ReconnectOptions>;
  readonly messages?: readonly Message[];
  readonly sendAutomaticallyWhen?: Predicate;
  readonly onData?: (part: { type: string; data: unknown }) => void;
}

/** One installed version of the AI SDK. */
export interface Kit {
  readonly version: Version;
  readonly major: 6 | 7;
  readonly stock: Predicate;
  readonly toolCalls: Predicate;
  /**
   * Whether a client that has loaded part of a message takes a resumed stream for a replay of it;
   * before 7.0.138 its parts are added to those loaded.
   */
  readonly resumesLoaded: boolean;
  chat(options: ChatOptions): ChatLike;
  /** Why a chunk is not valid in this version, or undefined. */
  chunkFault(chunk: unknown): Promise<string | undefined>;
  /** Why a list of messages is not valid in this version, or undefined. */
  messagesFault(messages: readonly Message[]): Promise<string | undefined>;
}

/** What the validator says, without the value, which stands in the trace anyway. */
function reason(error: Error | undefined): string {
  const cause = error?.cause instanceof Error ? error.cause : error;
  return (cause?.message ?? "no reason given").replaceAll(/\s+/g, " ").slice(0, 1_000);
}

type Made<Instance> = new (options: object) => Instance;
type Client = typeof ai6 | typeof ai6Floor | typeof ai7 | typeof ai7Floor;

function kit(version: Version, client: Client): Kit {
  const Chat = client.Chat as unknown as Made<ChatLike>;
  const Transport = client.DefaultChatTransport as unknown as Made<object>;
  // AI SDK 6 has none, and no combination asks for it.
  const SocketTransport = (client as typeof ai7).WebSocketChatTransport as unknown as Made<object>;
  const schema = client.asSchema(client.uiMessageChunkSchema as never);
  const validate = client.safeValidateUIMessages as (given: {
    messages: unknown;
  }) => Promise<{ success: boolean; error?: Error }>;
  return {
    version,
    major: version.startsWith("6") ? 6 : 7,
    stock: client.lastAssistantMessageIsCompleteWithApprovalResponses as unknown as Predicate,
    toolCalls: client.lastAssistantMessageIsCompleteWithToolCalls as unknown as Predicate,
    resumesLoaded: version !== "7-floor",
    chat({
      api,
      headers,
      body,
      fetch,
      transport: kind,
      webSocket,
      reconnect,
      messages,
      ...options
    }) {
      const kept = {
        kind: "bidi",
        api,
        major: version.startsWith("6") ? 6 : 7,
        headers,
        body,
        ...(webSocket && { webSocket }),
        ...(reconnect && { reconnect }),
      } as const;
      const transport = {
        http: () => new Transport({ api, headers, body, fetch }),
        websocket: () => new SocketTransport({ url: `${api}/ws`, headers, body, webSocket }),
        bidi: () => createChatTransport(kept),
        live: () => createChatTransport({ ...kept, live: { chatId: options.id } }),
      }[kind ?? "http"]();
      return new Chat({ ...options, transport, ...(messages && { messages: [...messages] }) });
    },
    async chunkFault(chunk) {
      const judged = await schema.validate?.(chunk);
      if (judged === undefined) return "the package brings no schema for chunks";
      return judged.success ? undefined : `${version}: ${reason(judged.error)}`;
    },
    async messagesFault(messages) {
      // What the page would store: undefined keys do not survive JSON.
      const judged = await validate({ messages: JSON.parse(JSON.stringify(messages)) });
      return judged.success ? undefined : `${version}: ${reason(judged.error)}`;
    },
  };
}

export const kits: Readonly<Record<Version, Kit>> = {
  "6": kit("6", ai6),
  "6-floor": kit("6-floor", ai6Floor),
  "7": kit("7", ai7),
  "7-floor": kit("7-floor", ai7Floor),
};

/** The versions a chunk must be valid in: what a 6 client gets is valid in both majors. */
export function judges(version: Version): Kit[] {
  if (kits[version].major === 7) return [kits[version]];
  return [kits[version], version === "6-floor" ? kits["7-floor"] : kits["7"]];
}
