import type { ChatTransport, UIMessage } from "ai";
import type { SocketClass } from "../refusals.ts";
import { type HeaderSource, resolveHeaders } from "../requests.ts";
import type { StoredChat } from "../stored-chat.ts";
import { isLiveEvent, Listeners, type LiveEvents, type LiveFrame } from "./live-events.ts";
import { OpenRequest } from "./open-request.ts";
import { piecesOf } from "./parts.ts";
import { type Part, Pieces } from "./pieces.ts";
import { errorOf, type Frame, Requests } from "./requests.ts";
import { LastingSocket, type Patience } from "./socket.ts";

/** What a `BidiChatTransport` is made with. */
export interface BidiOptions {
  /** The address of the socket; `http` becomes `ws`, and a path is below the page's own origin. */
  readonly url: string;
  /** The AI SDK's major, which decides the chunks that a client may get. */
  readonly major: 6 | 7;
  readonly protocols?: string | string[] | undefined;
  /** Query parameters of the handshake, asked for at each connection. */
  readonly params?: Record<string, string> | (() => Record<string, string>) | undefined;
  /** Sent with each frame, since pages cannot set headers of a handshake. */
  readonly headers?: HeaderSource | undefined;
  /** Further properties of the body; a function is asked for each request. */
  readonly body?: object | (() => object | Promise<object>) | undefined;
  /** The class that opens sockets, where the platform's own is not to be used. */
  readonly webSocket?: SocketClass | undefined;
  /** Loads the chat, for answers that were completed while there was no connection. */
  readonly stored?: ((chatId: string) => Promise<StoredChat<unknown> | undefined>) | undefined;
  readonly patience?: Partial<Patience> | undefined;
}

type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>["sendMessages"]>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type Chunks = Awaited<ReturnType<ChatTransport<UIMessage>["sendMessages"]>>;

const LIVE = "live";

/**
 * A transport of chats over one socket, in the frames of the AI SDK's `WebSocketChatTransport`.
 *
 * It works with AI SDK 6 too, and it keeps the connection: a socket that breaks or falls silent is
 * opened again, and the open requests go on by `resume`, so that their streams end with the message
 * of an unbroken connection. On `/live` it also carries audio and what the live events tell.
 */
export class BidiChatTransport<Message extends UIMessage = UIMessage>
  implements ChatTransport<Message>
{
  readonly resumeStreamIsReplay = true;
  readonly #options: BidiOptions;
  readonly #socket: LastingSocket;
  readonly #requests: Requests;
  readonly #listeners = new Listeners();
  #isLive = false;
  /** What the server has said of the live run last, on the present connection. */
  #complaint: Error | undefined;
  /** The rates of the present connection, once it is known. */
  #ready: LiveEvents["ready"] | undefined;

  constructor(options: BidiOptions) {
    this.#options = options;
    const { protocols, webSocket, patience, stored, major } = options;
    this.#requests = new Requests({
      send: (frame) => this.#socket.send(JSON.stringify(frame)),
      broken: (error) => this.#broken(error),
      stored,
      major,
    });
    this.#socket = new LastingSocket(
      { url: () => this.#url(), protocols, webSocket },
      {
        opened: () => this.#opened(),
        text: (data) => this.#text(data),
        bytes: (data) => this.#listeners.tell("audio", data),
        lost: () => this.#lost(),
        failed: (error) => this.#failed(error),
        isNeeded: () => this.#isLive || !this.#requests.isEmpty,
      },
      patience,
    );
  }

  async sendMessages(options: SendOptions<Message>): Promise<Chunks> {
    const { chatId, messages, trigger, messageId } = options;
    options.abortSignal?.throwIfAborted();
    const continued = trigger === "submit-message" && messages.find(({ id }) => id === messageId);
    const isAnswer = continued && continued.role === "assistant";
    const request = this.#request("send", options, {
      have: piecesOf(isAnswer ? (continued as { id: string; parts: Part[] }) : undefined),
      frame: { id: chatId, trigger, messageId, messages },
    });
    return request.chunks as unknown as Chunks;
  }

  async reconnectToStream(options: ResumeOptions): Promise<Chunks | null> {
    options.abortSignal?.throwIfAborted();
    const frame = { id: options.chatId };
    const request = this.#request("resume", options, { have: new Pieces(), frame });
    return (await request.response) as Chunks | null;
  }

  /** Keep a live connection from now on. */
  connect(): void {
    this.#isLive = true;
    this.#socket.open();
  }

  /** Let the connection go once no request needs it. */
  disconnect(): void {
    this.#isLive = false;
    if (this.#requests.isEmpty) this.#socket.close();
  }

  /**
   * Listen to a live event until the returned function is called. Who listens to `ready` only when
   * the connection is there already, because a request has needed it, is told at once.
   */
  on<Name extends keyof LiveEvents>(
    name: Name,
    listener: (told: LiveEvents[Name]) => void,
  ): () => void {
    if (name === "ready" && this.#ready !== undefined && this.#socket.isOpen) {
      listener(this.#ready as LiveEvents[Name]);
    }
    return this.#listeners.on(name, listener);
  }

  /** Say something that belongs to no request; false if there is no connection. */
  tell(frame: LiveFrame): boolean {
    return this.#socket.send(JSON.stringify({ ...frame, requestId: LIVE }));
  }

  /** Send PCM16, little-endian, mono, at the `inputRate` of `ready`; false if it cannot go. */
  sendAudio(samples: ArrayBuffer): boolean {
    return this.#socket.send(samples);
  }

  /** Close the connection; open streams fail. A later request opens one again. */
  close(): void {
    this.#isLive = false;
    this.#socket.close();
    this.#requests.fail(new Error("The transport was closed."));
  }

  #request(
    kind: "send" | "resume",
    given: SendOptions<Message> | ResumeOptions,
    { have, frame }: { have: Pieces; frame: { id: string; [key: string]: unknown } },
  ): OpenRequest {
    const { metadata } = given;
    const request = new OpenRequest({
      kind,
      chatId: given.chatId,
      have,
      abortSignal: given.abortSignal,
      left: (left) => this.#requests.left(left),
      ask: async (type) => ({
        type,
        ...(type === "send" ? frame : { id: given.chatId }),
        headers: {
          ...(await resolveHeaders(this.#options.headers)),
          ...(await resolveHeaders(given.headers)),
        },
        body: { ...(await this.#body()), ...given.body },
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
    const address = new URL(url, globalThis.location?.href);
    address.protocol = address.protocol.replace(/^http/, "ws");
    for (const [key, value] of Object.entries(
      typeof params === "function" ? params() : (params ?? {}),
    )) {
      address.searchParams.set(key, value);
    }
    return address;
  }

  #opened(): void {
    this.#complaint = undefined;
    this.#ready = undefined;
    this.#listeners.tell("connection", "open");
    this.#requests.connected();
  }

  #lost(): void {
    this.#requests.lost(this.#complaint);
    this.#listeners.tell("connection", "lost");
  }

  #failed(failure: Error): void {
    const error = this.#complaint ?? failure;
    this.#isLive = false;
    this.#requests.fail(error);
    this.#listeners.tell("refused", error);
  }

  #broken(error: Error): void {
    this.#requests.fail(error);
    this.#socket.cut("a frame that makes no sense");
  }

  #text(data: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(data) as Frame;
    } catch {
      this.#broken(new Error("The server sent a frame that cannot be read."));
      return;
    }
    if (frame.requestId === LIVE) this.#live(frame);
    else this.#requests.take(frame);
  }

  #live(frame: Frame): void {
    const { type, requestId: _, ...told } = frame;
    if (type === "ready") this.#ready = told as unknown as LiveEvents["ready"];
    if (isLiveEvent(type)) this.#listeners.tell(type, told as never);
    if (type !== "error") return;
    this.#complaint = errorOf(frame);
    this.#listeners.tell("error", this.#complaint);
  }
}
