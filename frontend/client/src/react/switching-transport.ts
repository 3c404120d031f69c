import { type ChatTransport, DefaultChatTransport as StockTransport, type UIMessage } from "ai";
import type {
  ChunkStream,
  ReconnectToStreamOptions,
  SendMessagesOptions,
} from "../ai-transport-types.ts";
import type { BidiChatTransport } from "../bidi/bidi-transport.ts";
import type { BidiOptions } from "../bidi/create-bidi-transport.ts";
import type { LiveEvents } from "../bidi/live-events.ts";
import { urlBelow } from "../chat-api.ts";
import { failIdleSockets, failIdleStreams } from "../idle-timeout.ts";
import { installedMajor } from "../installed-major.ts";
import { rejectRefusals } from "../refusals.ts";
import { SocketRefusals } from "../socket-refusals.ts";
import { createSseTransport } from "../sse.ts";
import { requestHeaders } from "../transport-options.ts";
import { createWebSocketTransport } from "../websocket.ts";
import type { ConnectionOptions, TransportKind } from "./options.ts";

/** The callbacks of a `SwitchingTransport`. */
export interface TransportCallbacks<Message extends UIMessage> {
  /** Additional properties of the body of each request. */
  requestBody(): object;
  /** The server has accepted a request. */
  onAccepted(messages: readonly Message[]): void;
  /** A resume was requested (true), or it has ended, also with an error (false). */
  onResume(isRequested: boolean): void;
  /** A resume found no running turn. */
  onNoActiveTurn(): void;
  /** A live connection reported the state of an approval. */
  onApproval(approval: LiveEvents["approval"]): void;
}

/**
 * The transport of one chat. It delegates to a transport of the kind in the current options, which
 * may change between requests, and rejects with `RequestRefused` if the server refuses a request.
 */
export class SwitchingTransport<Message extends UIMessage> implements ChatTransport<Message> {
  readonly resumeStreamIsReplay = true;
  options: ConnectionOptions<Message>;
  readonly #chatId: () => string;
  readonly #callbacks: TransportCallbacks<Message>;
  readonly #transports = new Map<string, ChatTransport<Message>>();
  /** The error codes of the transport over WebSocket. */
  readonly #refusals = new SocketRefusals();
  /** Loaded on the first use: most pages need no transport but the AI SDK's. */
  #bidi: typeof import("../bidi/create-bidi-transport.ts") | undefined;
  /** The number of disconnects; the result of an earlier resume is ignored. */
  #disconnects = 0;

  constructor(
    options: ConnectionOptions<Message>,
    chatId: () => string,
    callbacks: TransportCallbacks<Message>,
  ) {
    this.options = options;
    this.#chatId = chatId;
    this.#callbacks = callbacks;
  }

  get apiUrl(): string {
    return this.options.apiUrl ?? "/api";
  }

  /** The URL of the chat route. */
  get chatUrl(): string {
    return urlBelow(this.apiUrl, "/chat");
  }

  get fetch(): typeof fetch {
    return this.options.fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** The headers of every request: those of the options, `x-ai-sdk` and `x-release`. */
  readonly headers = (): Promise<Record<string, string>> =>
    requestHeaders(this.options, installedMajor);

  async sendMessages(request: SendMessagesOptions<Message>): Promise<ChunkStream> {
    const onAccepted = () => this.#callbacks.onAccepted(request.messages);
    try {
      if (this.options.kind === "bidi") await this.load();
      const chunks = await this.#transport().sendMessages(request);
      return this.#observe(chunks, onAccepted);
    } catch (error) {
      throw this.#refusals.toRefusal(error);
    }
  }

  async reconnectToStream(request: ReconnectToStreamOptions): Promise<ChunkStream | null> {
    const disconnects = this.#disconnects;
    this.#callbacks.onResume(true);
    try {
      if (this.options.kind === "bidi") await this.load();
      if (disconnects !== this.#disconnects) return null;
      const chunks = await this.#transport().reconnectToStream(request);
      if (chunks !== null) return this.#observe(chunks, () => {});
      if (disconnects === this.#disconnects) this.#callbacks.onNoActiveTurn();
      return null;
    } catch (error) {
      throw this.#refusals.toRefusal(error);
    } finally {
      setTimeout(() => this.#callbacks.onResume(false));
    }
  }

  /** Load the code of the transport of kind `bidi`. */
  async load(): Promise<void> {
    this.#bidi ??= await import("../bidi/create-bidi-transport.ts");
  }

  /** The live transport, after `load`; throws an `Error` if the options name another kind. */
  liveTransport(): BidiChatTransport<Message> {
    const { kind, live } = this.options;
    if (kind !== "bidi" || live !== true) {
      throw new Error('To speak, set the options kind: "bidi" and live: true.');
    }
    return this.#transport() as BidiChatTransport<Message>;
  }

  /** Close the transports that the current options no longer use. */
  closeUnused(): void {
    this.#close(this.#key());
  }

  /**
   * Close every socket; the next request opens a new one. Stop the chat afterwards: for the server,
   * a closed socket is a reader that may resume, whereas the `abort` frame of a stopped chat ends
   * the turn after a grace period.
   */
  disconnect(): void {
    this.#disconnects += 1;
    this.#close();
  }

  /** Close every transport, except the one with the key. */
  #close(except?: string): void {
    for (const [key, transport] of this.#transports) {
      if (key === except) continue;
      this.#transports.delete(key);
      (transport as { close?: () => void }).close?.();
    }
  }

  #key(): string {
    const { kind = "sse", live = false } = this.options;
    return JSON.stringify([kind, live, this.chatUrl]);
  }

  #transport(): ChatTransport<Message> {
    this.closeUnused();
    const key = this.#key();
    const transport = this.#transports.get(key) ?? this.#create(this.options.kind ?? "sse");
    this.#transports.set(key, transport);
    return transport;
  }

  #create(kind: TransportKind): ChatTransport<Message> {
    const { ai = {}, credentials, webSocket, protocols, params, reconnect } = this.options;
    const common = {
      api: this.chatUrl,
      headers: this.headers,
      body: async () => ({ ...(await this.#optionsBody()), ...this.#callbacks.requestBody() }),
      credentials,
      params,
    };
    const fetch: typeof globalThis.fetch = (...request) => this.fetch(...request);
    switch (kind) {
      case "sse": {
        const { DefaultChatTransport = StockTransport } = ai;
        return createSseTransport<ChatTransport<Message>>({
          ...common,
          ai: { DefaultChatTransport },
          // The stock transport throws other errors, and waits for ever for a silent network.
          fetch: failIdleStreams(rejectRefusals(fetch)),
        });
      }
      case "websocket":
        return createWebSocketTransport<ChatTransport<Message>>({
          ...common,
          ai,
          protocols,
          webSocket: this.#refusals.observe(failIdleSockets(webSocket ?? globalThis.WebSocket)),
        });
      case "bidi":
        return this.#createBidi({ ...common, fetch, major: installedMajor, reconnect, webSocket });
    }
  }

  #createBidi(options: BidiOptions): BidiChatTransport<Message> {
    if (this.#bidi === undefined) throw new Error("The transport is not loaded.");
    const { createBidiTransport } = this.#bidi;
    if (this.options.live !== true) return createBidiTransport<Message>(options);
    const live = { chatId: this.#chatId() };
    const transport = createBidiTransport<Message>({ ...options, live });
    transport.on("approval", (approval) => this.#callbacks.onApproval(approval));
    return transport;
  }

  async #optionsBody(): Promise<object> {
    const { body } = this.options;
    return (typeof body === "function" ? await body() : body) ?? {};
  }

  /** The same chunks; calls `onAccepted` on the first one and converts errors to refusals. */
  #observe(chunks: ChunkStream, onAccepted: () => void): ChunkStream {
    const reader = chunks.getReader();
    let isAccepted = false;
    return new ReadableStream({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          if (!isAccepted) onAccepted();
          isAccepted = true;
          controller.enqueue(value);
        } catch (error) {
          controller.error(this.#refusals.toRefusal(error));
        }
      },
      cancel: (reason) => reader.cancel(reason),
    });
  }
}
