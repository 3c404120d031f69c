import type { ChatTransport, UIMessage } from "ai";
import type { BidiChatTransport } from "../bidi/bidi-transport.ts";
import type { LiveEvents } from "../bidi/live-events.ts";
import { type BidiChatOptions, createChatTransport } from "../chat-transport.ts";
import { refusingFetch, SocketRefusals } from "../refusals.ts";
import { below, resolveHeaders } from "../requests.ts";
import type { ConnectionOptions, TransportKind } from "./options.ts";

type Chunks = Awaited<ReturnType<ChatTransport<UIMessage>["sendMessages"]>>;
type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>["sendMessages"]>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];

/** What a connection asks for and tells while it is used. */
export interface ConnectionEvents<Message extends UIMessage> {
  /** Properties of the body of each request, beside those of the options. */
  body(): object;
  /** The server has taken a request. */
  taken(messages: readonly Message[]): void;
  /** A resume found nothing that runs. */
  idle(): void;
  /** An approval was decided, as a live connection tells. */
  decided(approval: LiveEvents["approval"]): void;
}

function closed(transport: unknown): void {
  (transport as { close?: () => void }).close?.();
}

/**
 * One chat's way to the server: a transport for `Chat` that may change its kind between requests,
 * and that throws a `RequestRefused` where the server refuses.
 */
export class Connection<Message extends UIMessage> implements ChatTransport<Message> {
  /** A resume brings the message from its beginning. */
  readonly resumeStreamIsReplay = true;
  options: ConnectionOptions<Message>;
  readonly #chatId: () => string;
  readonly #events: ConnectionEvents<Message>;
  readonly #open = new Map<string, ChatTransport<Message>>();
  readonly #refusals = new SocketRefusals();
  /** How often the chat was left. */
  #left = 0;

  constructor(
    options: ConnectionOptions<Message>,
    chatId: () => string,
    events: ConnectionEvents<Message>,
  ) {
    this.options = options;
    this.#chatId = chatId;
    this.#events = events;
  }

  get apiUrl(): string {
    return this.options.apiUrl ?? "/api";
  }

  /** The address of chats, below which a chat is stopped and resumed. */
  get chatUrl(): string {
    return below(this.apiUrl, "/chat");
  }

  get fetch(): typeof fetch {
    return this.options.fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** The headers of every request: the caller's, the major and the release. */
  readonly headers = async (): Promise<Record<string, string>> => {
    const { headers, major, release } = this.options;
    return {
      ...(await resolveHeaders(headers)),
      "x-ai-sdk": String(major),
      ...(release && { "x-release": release }),
    };
  };

  async sendMessages(request: SendOptions<Message>): Promise<Chunks> {
    const told = (error: unknown) => this.#refusals.named(error);
    const taken = () => this.#events.taken(request.messages);
    try {
      return passedOn(await this.#transport().sendMessages(request), told, taken);
    } catch (error) {
      throw told(error);
    }
  }

  async reconnectToStream(request: ResumeOptions): Promise<Chunks | null> {
    const told = (error: unknown) => this.#refusals.named(error);
    const left = this.#left;
    try {
      const chunks = await this.#transport().reconnectToStream(request);
      if (chunks !== null) return passedOn(chunks, told, () => {});
      if (left === this.#left) this.#events.idle();
      return null;
    } catch (error) {
      throw told(error);
    }
  }

  /** The connection over which one can speak; throws if the options name another kind. */
  live(): BidiChatTransport<Message> {
    const { kind, live } = this.options;
    if (kind !== "bidi" || live !== true) {
      throw new Error('To speak, set the options kind: "bidi" and live: true.');
    }
    return this.#transport() as BidiChatTransport<Message>;
  }

  /** Close what other kinds than the present one have left open. */
  settle(): void {
    const key = this.#key();
    for (const [other, transport] of this.#open) {
      if (other === key) continue;
      this.#open.delete(other);
      closed(transport);
    }
  }

  /**
   * Let go of every socket; the next request opens one again. The chat is to be stopped after.
   *
   * For the server a socket that closes is a reader that may come back. An `abort`, which a chat
   * that is stopped sends, would end the turn soon.
   */
  leave(): void {
    this.#left += 1;
    for (const transport of this.#open.values()) closed(transport);
    this.#open.clear();
  }

  #key(): string {
    const { kind = "sse", live = false, major } = this.options;
    return JSON.stringify([kind, live, major, this.chatUrl]);
  }

  #transport(): ChatTransport<Message> {
    this.settle();
    const key = this.#key();
    const transport = this.#open.get(key) ?? this.#made(this.options.kind ?? "sse");
    this.#open.set(key, transport);
    return transport;
  }

  #made(kind: TransportKind): ChatTransport<Message> {
    const { ai, major, credentials, webSocket, protocols, params, patience } = this.options;
    const common = {
      api: this.chatUrl,
      major,
      headers: this.headers,
      body: async () => ({ ...(await this.#ownBody()), ...this.#events.body() }),
    };
    const socket = { ...(params && { params }) };
    const fetch: typeof globalThis.fetch = (...request) => this.fetch(...request);
    const request = { fetch, ...(credentials && { credentials }) };
    switch (kind) {
      case "sse": {
        const { DefaultChatTransport } = ai;
        if (DefaultChatTransport === undefined) {
          throw new Error('For kind "sse", hand in DefaultChatTransport with the option ai.');
        }
        return createChatTransport<ChatTransport<Message>>({
          ...common,
          ...request,
          kind,
          ai: { DefaultChatTransport },
          fetch: refusingFetch(fetch),
        });
      }
      case "websocket":
        return createChatTransport<ChatTransport<Message>>({
          ...common,
          ...socket,
          kind,
          ai,
          webSocket: this.#refusals.seenBy(webSocket),
          ...(protocols && { protocols }),
        });
      case "bidi":
        return this.#bidi({
          ...common,
          ...socket,
          ...request,
          kind,
          ...(webSocket && { webSocket }),
          ...(patience && { patience }),
        });
    }
  }

  #bidi(options: BidiChatOptions): BidiChatTransport<Message> {
    if (this.options.live !== true) return createChatTransport<Message>(options);
    const live = { chatId: this.#chatId() };
    const transport = createChatTransport<Message>({ ...options, live });
    transport.on("approval", (approval) => this.#events.decided(approval));
    return transport;
  }

  async #ownBody(): Promise<object> {
    const { body } = this.options;
    return (typeof body === "function" ? await body() : body) ?? {};
  }
}

/** The same chunks; the first one says that the request was taken. */
function passedOn(chunks: Chunks, told: (error: unknown) => unknown, taken: () => void): Chunks {
  const reader = chunks.getReader();
  let isTaken = false;
  return new ReadableStream({
    pull: async (controller) => {
      try {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        if (!isTaken) taken();
        isTaken = true;
        controller.enqueue(value);
      } catch (error) {
        controller.error(told(error));
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
