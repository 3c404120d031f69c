import type { ChatTransport, UIMessage } from "ai";
import type {
  ChunkStream,
  ReconnectToStreamOptions,
  SendMessagesOptions,
} from "../ai-transport-types.ts";
import { type HeaderSource, resolveHeaders, type StoredChat } from "../chat-api.ts";
import type { Major } from "../installed-major.ts";
import type { SocketClass } from "../socket-class.ts";
import { isServerEvent, LiveEventEmitter, type LiveEvents, type LiveFrame } from "./live-events.ts";
import { errorOfFrame, type Frame, OpenRequest, OpenRequests } from "./open-requests.ts";
import type { Part } from "./parts-to-chunks.ts";
import { ReceivedMessage } from "./received-message.ts";
import { ReconnectingSocket, type ReconnectOptions } from "./reconnecting-socket.ts";

/** The major version of the AI SDK; it determines the chunk types that the client supports. */
export type MajorSource = Major | (() => Promise<Major>);

/** The options of a `BidiChatTransport`. */
export interface BidiChatTransportOptions {
  /** The URL of the socket, absolute or relative to the page; `http` is replaced by `ws`. */
  readonly url: string;
  readonly major: MajorSource;
  /**
   * Whether a new connection takes the chat over from the user's other pages: then a resume opens
   * none, since it may have been caused by what another page does.
   */
  readonly takesOver?: boolean;
  readonly protocols?: string | string[] | undefined;
  /** Query parameters of the handshake; a function is called for each connection. */
  readonly params?: Record<string, string> | (() => Record<string, string>) | undefined;
  /** Sent in each frame, since a page cannot set the headers of a handshake. */
  readonly headers?: HeaderSource | undefined;
  /** Additional properties of the body; a function is called for each request. */
  readonly body?: object | (() => object | Promise<object>) | undefined;
  /** The WebSocket class; defaults to the platform's. */
  readonly webSocket?: SocketClass | undefined;
  /** Loads the chat to recover responses that ended without a connection. */
  readonly loadChat?: ((chatId: string) => Promise<StoredChat<unknown> | undefined>) | undefined;
  readonly reconnect?: Partial<ReconnectOptions> | undefined;
}

/** The `requestId` of the frames that belong to no request. */
const LIVE = "live";

/**
 * A chat transport over one socket, with the frames of the AI SDK's `WebSocketChatTransport`.
 *
 * Unlike the stock transport it supports AI SDK 6 and reconnects: a broken or idle socket is
 * reopened, and the open requests are resumed, so that their streams end with the same message as on
 * an uninterrupted connection. On `/live` it also carries audio and the live events.
 */
export class BidiChatTransport<Message extends UIMessage = UIMessage>
  implements ChatTransport<Message>
{
  readonly resumeStreamIsReplay = true;
  readonly #options: BidiChatTransportOptions;
  readonly #socket: ReconnectingSocket;
  readonly #requests: OpenRequests;
  readonly #events = new LiveEventEmitter();
  #isLive = false;
  /** The last error of the live run on the current connection. */
  #liveError: Error | undefined;
  /** The `ready` event of the current connection, once it was received. */
  #ready: LiveEvents["ready"] | undefined;

  constructor(options: BidiChatTransportOptions) {
    this.#options = options;
    const { protocols, webSocket, reconnect, loadChat, major } = options;
    this.#requests = new OpenRequests({
      send: (frame) => this.#socket.send(JSON.stringify(frame)),
      protocolError: (error) => this.#onProtocolError(error),
      loadChat,
      major: async () => (typeof major === "function" ? major() : major),
    });
    this.#socket = new ReconnectingSocket(
      { url: () => this.#url(), protocols, webSocket },
      {
        onOpen: () => this.#onOpen(),
        onText: (data) => this.#onText(data),
        onBinary: (data) => this.#events.emit("audio", data),
        onLost: () => this.#onLost(),
        onFailed: (error) => this.#onFailed(error),
        isNeeded: () => this.#isLive || !this.#requests.isEmpty,
      },
      reconnect,
    );
  }

  async sendMessages(options: SendMessagesOptions<Message>): Promise<ChunkStream> {
    const { chatId, messages, trigger, messageId } = options;
    options.abortSignal?.throwIfAborted();
    const continued = trigger === "submit-message" && messages.find(({ id }) => id === messageId);
    const isContinuation = continued && continued.role === "assistant";
    const message = isContinuation ? (continued as { id: string; parts: Part[] }) : undefined;
    const request = this.#request("send", options, {
      received: ReceivedMessage.from(message),
      frame: { id: chatId, trigger, messageId, messages },
    });
    return request.chunks as unknown as ChunkStream;
  }

  async reconnectToStream(options: ReconnectToStreamOptions): Promise<ChunkStream | null> {
    options.abortSignal?.throwIfAborted();
    if (this.#options.takesOver === true && !this.#isLive && !this.#socket.isOpen) return null;
    const frame = { id: options.chatId };
    const request = this.#request("resume", options, {
      received: new ReceivedMessage(),
      frame,
    });
    return (await request.response) as ChunkStream | null;
  }

  /** Open the live connection and keep it open. */
  connect(): void {
    this.#isLive = true;
    this.#socket.open();
  }

  /** Stop keeping the live connection open; it is closed unless a request uses it. */
  disconnect(): void {
    this.#isLive = false;
    if (this.#requests.isEmpty) this.#socket.close();
  }

  /**
   * Add a listener for a live event; returns a function that removes it. A listener for `ready` is
   * called immediately if a request has already opened the connection.
   */
  on<Name extends keyof LiveEvents>(
    name: Name,
    listener: (event: LiveEvents[Name]) => void,
  ): () => void {
    if (name === "ready" && this.#ready !== undefined && this.#socket.isOpen) {
      listener(this.#ready as LiveEvents[Name]);
    }
    return this.#events.on(name, listener);
  }

  /** Send a frame that belongs to no request; returns false without a connection. */
  sendFrame(frame: LiveFrame): boolean {
    return this.#socket.send(JSON.stringify({ ...frame, requestId: LIVE }));
  }

  /**
   * Send audio: PCM16, little-endian, mono, at the `inputRate` of `ready`; returns false without a
   * connection.
   */
  sendAudio(samples: ArrayBuffer): boolean {
    return this.#socket.send(samples);
  }

  /** Close the connection and fail open streams. A later request opens a new connection. */
  close(): void {
    this.#isLive = false;
    this.#socket.close();
    this.#requests.fail(new Error("The transport was closed."));
  }

  #request(
    kind: "send" | "resume",
    options: SendMessagesOptions<Message> | ReconnectToStreamOptions,
    init: { received: ReceivedMessage; frame: { id: string; [key: string]: unknown } },
  ): OpenRequest {
    const { metadata } = options;
    const request = new OpenRequest({
      kind,
      chatId: options.chatId,
      received: init.received,
      abortSignal: options.abortSignal,
      onCancel: (cancelled) => this.#requests.cancelled(cancelled),
      createFrame: async (type) => ({
        type,
        ...(type === "send" ? init.frame : { id: options.chatId }),
        headers: {
          ...(await resolveHeaders(this.#options.headers)),
          ...(await resolveHeaders(options.headers)),
        },
        body: { ...(await this.#body()), ...options.body },
        metadata,
      }),
    });
    this.#requests.add(request, this.#socket.isOpen);
    this.#socket.open();
    return request;
  }

  async #body(): Promise<object> {
    const { body } = this.#options;
    return (typeof body === "function" ? await body() : body) ?? {};
  }

  async #url(): Promise<URL> {
    const { url, params } = this.#options;
    const resolved = new URL(url, globalThis.location?.href);
    resolved.protocol = resolved.protocol.replace(/^http/, "ws");
    for (const [key, value] of Object.entries(
      typeof params === "function" ? params() : (params ?? {}),
    )) {
      resolved.searchParams.set(key, value);
    }
    return resolved;
  }

  #onOpen(): void {
    this.#liveError = undefined;
    this.#ready = undefined;
    this.#events.emit("connection", "open");
    this.#requests.connected();
  }

  #onLost(): void {
    this.#requests.disconnected(this.#liveError);
    this.#events.emit("connection", "lost");
  }

  #onFailed(failure: Error): void {
    const error = this.#liveError ?? failure;
    this.#isLive = false;
    this.#requests.fail(error);
    this.#events.emit("refused", error);
  }

  #onProtocolError(error: Error): void {
    this.#requests.fail(error);
    this.#socket.reconnect("protocol error");
  }

  #onText(data: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(data) as Frame;
    } catch {
      this.#onProtocolError(new Error("The server sent a frame that cannot be read."));
      return;
    }
    if (frame.requestId === LIVE) this.#onLiveFrame(frame);
    else this.#requests.receive(frame);
  }

  #onLiveFrame(frame: Frame): void {
    const { type, requestId: _, ...event } = frame;
    if (type === "ready") this.#ready = event as unknown as LiveEvents["ready"];
    if (isServerEvent(type)) this.#events.emit(type, event as never);
    if (type !== "error") return;
    this.#liveError = errorOfFrame(frame);
    this.#events.emit("error", this.#liveError);
  }
}
