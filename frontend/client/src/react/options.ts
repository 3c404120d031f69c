import type { ChatInit, ChatTransport, UIMessage } from "ai";
import type { VoiceOptions, Worklets } from "../audio/voice.ts";
import type { Patience } from "../bidi/socket.ts";
import type { Major, Release, SseInit, WebSocketInit } from "../chat-transport.ts";
import type { ClientTools } from "../client-tools.ts";
import type { SendRule } from "../messages.ts";
import type { SocketClass } from "../refusals.ts";
import type { HeaderSource } from "../requests.ts";

/** How the chat reaches the server. */
export type TransportKind = "sse" | "websocket" | "bidi";

/**
 * The AI SDK's transports: the caller's own `ai`, or an object with those that are used; `bidi`
 * needs none.
 */
export interface Transports<Message extends UIMessage> {
  readonly DefaultChatTransport?: new (options: SseInit) => ChatTransport<Message>;
  /** AI SDK 7. */
  readonly WebSocketChatTransport?: new (
    options: WebSocketInit,
  ) => ChatTransport<Message>;
}

/** How the server is reached; all but `id` may change while the chat goes on. */
export interface ConnectionOptions<Message extends UIMessage> {
  readonly ai: Transports<Message>;
  /** The major of the `ai` that is handed in. */
  readonly major: Major;
  /** `sse` unless given. Another kind takes effect with the next request. */
  readonly kind?: TransportKind | undefined;
  /** What the server's addresses begin with; `/api` unless given. */
  readonly apiUrl?: string | undefined;
  /** Left out, the server's own setting holds. */
  readonly release?: Release | undefined;
  readonly headers?: HeaderSource | undefined;
  /** Further properties of the body; a function is asked for each request. */
  readonly body?: object | (() => object | Promise<object>) | undefined;
  readonly credentials?: RequestCredentials | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** The class that opens sockets, where the platform's own is not to be used. */
  readonly webSocket?: SocketClass | undefined;
  readonly protocols?: string | string[] | undefined;
  /** Whether a `bidi` connection is a live one, over which one can speak; no unless given. */
  readonly live?: boolean | undefined;
  /** How long a `bidi` connection waits for what. */
  readonly patience?: Partial<Patience> | undefined;
  /** Query parameters of a socket's handshake. */
  readonly params?: Record<string, string> | (() => Record<string, string>) | undefined;
}

/** What `useSluiceChat` takes. */
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
  /** The tools that the page runs, by name; each call is run once, after its approval if it asks. */
  readonly clientTools?: ClientTools | undefined;
  /** In place of the safe rule, which knows the names of `clientTools`. */
  readonly sendAutomaticallyWhen?: SendRule | undefined;
  /** Where the worklets of audio are, if the page's build has moved them. */
  readonly worklets?: Worklets | undefined;
  /** What is asked of the microphone, beside one channel without echo. */
  readonly microphone?: MediaTrackConstraints | undefined;
  /** What is said by voice, as it is said. */
  readonly onTranscript?: VoiceOptions["onTranscript"];
  /** Join the turn that runs when the page opens; yes unless given. */
  readonly resume?: boolean | undefined;
  /** Milliseconds between two renderings of messages that come in. */
  readonly throttle?: number | undefined;
  /** Milliseconds that `stop` waits for the server to end the stream; 10,000 unless given. */
  readonly stopTimeout?: number | undefined;
}
