import type { ChatInit, ChatTransport, UIMessage } from "ai";
import type { VoiceOptions, Worklets } from "../audio/voice.ts";
import type { ReconnectOptions } from "../bidi/reconnecting-socket.ts";
import type { HeaderSource } from "../chat-api.ts";
import type { ClientTools } from "../client-tool-executor.ts";
import type { SendRule } from "../send-automatically.ts";
import type { SocketClass } from "../socket-class.ts";
import type { SseInit } from "../sse.ts";
import type { Release } from "../transport-options.ts";
import type { SocketParams, WebSocketInit } from "../websocket.ts";

/** The kind of transport. */
export type TransportKind = "sse" | "websocket" | "bidi";

/** Transports of the AI SDK: the caller's `ai`, or an object with those in use. */
export interface Transports<Message extends UIMessage> {
  /** Used by `sse` in place of that of the installed `ai`. */
  readonly DefaultChatTransport?: new (
    options: SseInit,
  ) => ChatTransport<Message>;
  /** Required by `websocket`; AI SDK 7. */
  readonly WebSocketChatTransport?: new (
    options: WebSocketInit,
  ) => ChatTransport<Message>;
}

/** The connection to the server; these options may change between renderings. */
export interface ConnectionOptions<Message extends UIMessage> {
  readonly ai?: Transports<Message> | undefined;
  /** Default: `sse`. A change takes effect with the next request. */
  readonly kind?: TransportKind | undefined;
  /** The URL prefix of the server's routes. Default: `/api`. */
  readonly apiUrl?: string | undefined;
  /** Defaults to the server's setting. */
  readonly release?: Release | undefined;
  readonly headers?: HeaderSource | undefined;
  /** Additional properties of the body; a function is called for each request. */
  readonly body?: object | (() => object | Promise<object>) | undefined;
  readonly credentials?: RequestCredentials | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** The WebSocket class; defaults to the platform's. */
  readonly webSocket?: SocketClass | undefined;
  readonly protocols?: string | string[] | undefined;
  /** Whether a `bidi` connection is live, which `voice` requires. Default: false. */
  readonly live?: boolean | undefined;
  /** Timeouts and retry delays of a `bidi` connection. */
  readonly reconnect?: Partial<ReconnectOptions> | undefined;
  readonly params?: SocketParams | undefined;
}

/** The options of `useSluiceChat`. */
export interface SluiceChatOptions<Message extends UIMessage = UIMessage>
  extends ConnectionOptions<Message>,
    Pick<
      ChatInit<Message>,
      | "dataPartSchemas"
      | "generateId"
      | "id"
      | "messageMetadataSchema"
      | "messages"
      | "onData"
      | "onError"
      | "onFinish"
      | "onToolCall"
    > {
  /** Client-side tools by name; each call is executed once, after its approval if it requires one. */
  readonly clientTools?: ClientTools | undefined;
  /** Replaces the default rule, `sendAutomaticallyWhen` with the names of `clientTools`. */
  readonly sendAutomaticallyWhen?: SendRule | undefined;
  /** The URLs of the audio worklets, if the build of the page has moved them. */
  readonly worklets?: Worklets | undefined;
  /** Constraints in addition to one channel with echo cancellation and noise suppression. */
  readonly microphone?: MediaTrackConstraints | undefined;
  /** Called with each transcript of speech. */
  readonly onTranscript?: VoiceOptions["onTranscript"];
  /** Resume the running turn on mount. Default: true. */
  readonly resume?: boolean | undefined;
  /** Milliseconds between two renderings of a streaming message. */
  readonly throttle?: number | undefined;
  /** Milliseconds that `stop` waits for the server to end the stream. Default: 10,000. */
  readonly stopTimeout?: number | undefined;
}
