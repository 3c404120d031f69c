import { createBidiTransport } from "../../../frontend/client/src/bidi/create-bidi-transport.ts";
import type { ReconnectOptions } from "../../../frontend/client/src/bidi/reconnecting-socket.ts";
import * as ai6 from "../clients/ai-6/client.ts";
import * as ai6Floor from "../clients/ai-6-floor/client.ts";
import * as ai7 from "../clients/ai-7/client.ts";
import * as ai7Floor from "../clients/ai-7-floor/client.ts";
import type { Message } from "./messages.ts";

/** The installed versions of the AI SDK: the newest and the oldest supported of each major. */
export type Version = "6" | "6-floor" | "7" | "7-floor";

export type Status = "submitted" | "streaming" | "ready" | "error";

/**
 * The stock socket transport, which only AI SDK 7 has, or the BIDI transport of the client package:
 * on the same route, or on the live route.
 */
export type SocketTransport = "websocket" | "bidi" | "live";

/** A `sendAutomaticallyWhen` rule. */
export type SendRule = (state: { messages: Message[] }) => boolean | PromiseLike<boolean>;

/** The members of the AI SDK's `Chat` that the stories use; its types differ between the majors. */
export interface ChatLike {
  readonly id: string;
  messages: Message[];
  readonly status: Status;
  readonly error: Error | undefined;
  sendMessage(message?: { text: string; messageId?: string }): Promise<void>;
  regenerate(): Promise<void>;
  addToolApprovalResponse(response: {
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
  "~registerMessagesCallback"(listener: () => void): () => void;
  "~registerStatusCallback"(listener: () => void): () => void;
}

export interface ChatOptions {
  readonly id: string;
  readonly api: string;
  readonly headers: Record<string, string>;
  /** Returns additional properties of the body of each request. */
  readonly body: () => object;
  readonly fetch: typeof fetch;
  /** A socket transport; SSE without one. */
  readonly transport?: SocketTransport;
  /** The WebSocket class of the socket transport. */
  readonly webSocket?: typeof WebSocket;
  readonly reconnect?: Partial<ReconnectOptions>;
  readonly messages?: readonly Message[];
  readonly sendAutomaticallyWhen?: SendRule;
  readonly onData?: (part: { type: string; data: unknown }) => void;
  readonly onToolCall?: (options: { toolCall: { toolName: string; toolCallId: string } }) => void;
}

/** One version of the AI SDK. */
export interface AiSdk {
  readonly version: Version;
  readonly major: 6 | 7;
  readonly stock: SendRule;
  readonly toolCalls: SendRule;
  /**
   * Whether a resumed stream replaces a partial message that the client has loaded; in 7.0.138 its
   * parts are appended.
   */
  readonly replacesOnResume: boolean;
  createChat(options: ChatOptions): ChatLike;
  /** The reason why a chunk is invalid in this version; undefined if it is valid. */
  chunkFault(chunk: unknown): Promise<string | undefined>;
  /** The reason why messages are invalid in this version; undefined if they are valid. */
  messagesFault(messages: readonly Message[]): Promise<string | undefined>;
}

/** The message of a validation error without the value, which the trace contains. */
function validationMessage(error: Error | undefined): string {
  const cause = error?.cause instanceof Error ? error.cause : error;
  return (cause?.message ?? "no reason given").replaceAll(/\s+/g, " ").slice(0, 1_000);
}

type Constructor<Instance> = new (options: object) => Instance;
type Client = typeof ai6 | typeof ai6Floor | typeof ai7 | typeof ai7Floor;

function createSdk(version: Version, client: Client): AiSdk {
  const Chat = client.Chat as unknown as Constructor<ChatLike>;
  const Transport = client.DefaultChatTransport as unknown as Constructor<object>;
  // Undefined in AI SDK 6; no combination uses it there.
  const SocketTransport = (client as typeof ai7)
    .WebSocketChatTransport as unknown as Constructor<object>;
  const schema = client.asSchema(client.uiMessageChunkSchema as never);
  const validate = client.safeValidateUIMessages as (options: {
    messages: unknown;
  }) => Promise<{ success: boolean; error?: Error }>;
  return {
    version,
    major: version.startsWith("6") ? 6 : 7,
    stock: client.lastAssistantMessageIsCompleteWithApprovalResponses as unknown as SendRule,
    toolCalls: client.lastAssistantMessageIsCompleteWithToolCalls as unknown as SendRule,
    replacesOnResume: version !== "7-floor",
    createChat({
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
      const bidiOptions = {
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
        bidi: () => createBidiTransport(bidiOptions),
        live: () => createBidiTransport({ ...bidiOptions, live: { chatId: options.id } }),
      }[kind ?? "http"]();
      return new Chat({ ...options, transport, ...(messages && { messages: [...messages] }) });
    },
    async chunkFault(chunk) {
      const result = await schema.validate?.(chunk);
      if (result === undefined) return "the SDK has no schema for chunks";
      return result.success ? undefined : `${version}: ${validationMessage(result.error)}`;
    },
    async messagesFault(messages) {
      // As JSON, which has no undefined properties.
      const result = await validate({ messages: JSON.parse(JSON.stringify(messages)) });
      return result.success ? undefined : `${version}: ${validationMessage(result.error)}`;
    },
  };
}

export const SDKS: Readonly<Record<Version, AiSdk>> = {
  "6": createSdk("6", ai6),
  "6-floor": createSdk("6-floor", ai6Floor),
  "7": createSdk("7", ai7),
  "7-floor": createSdk("7-floor", ai7Floor),
};

/** The versions that validate a client's chunks: those for AI SDK 6 must be valid in both majors. */
export function validatorsFor(version: Version): AiSdk[] {
  if (SDKS[version].major === 7) return [SDKS[version]];
  return [SDKS[version], version === "6-floor" ? SDKS["7-floor"] : SDKS["7"]];
}
