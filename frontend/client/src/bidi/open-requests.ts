import type { StoredChat } from "../chat-api.ts";
import type { Major } from "../installed-major.ts";
import { refusalFromCode } from "../socket-refusals.ts";
import type { Chunk } from "./parts-to-chunks.ts";
import type { ReceivedMessage } from "./received-message.ts";
import { networkError } from "./reconnecting-socket.ts";
import { ReplayFilter } from "./replay-filter.ts";

/** A frame of the server; its properties are not validated. */
export interface Frame {
  readonly type?: unknown;
  readonly requestId?: unknown;
  readonly [key: string]: unknown;
}

/** A `send` or `resume` frame without its `requestId`. */
export interface RequestFrame {
  readonly type: "send" | "resume";
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly body: object;
  readonly [key: string]: unknown;
}

/** Creates the frame of a request, with the headers and the body at the time of the call. */
export type CreateFrame = (type: "send" | "resume") => Promise<RequestFrame>;

export interface OpenRequestOptions {
  readonly kind: "send" | "resume";
  readonly chatId: string;
  readonly createFrame: CreateFrame;
  /** The client's state of the message that the response continues. */
  readonly received: ReceivedMessage;
  readonly abortSignal: AbortSignal | undefined;
  /** Called when the reader cancels the stream or aborts the request. */
  readonly onCancel: (request: OpenRequest) => void;
}

/** A request and its response stream, which may span several connections. */
export class OpenRequest {
  readonly kind: "send" | "resume";
  readonly chatId: string;
  readonly createFrame: CreateFrame;
  readonly received: ReceivedMessage;
  readonly chunks: ReadableStream<Chunk>;
  /** The stream, or null if a resume found no running turn. */
  readonly response: Promise<ReadableStream<Chunk> | null>;
  /** The id on the current connection; undefined until the request is sent there. */
  requestId: string | undefined;
  /** Whether the request was sent on any connection. */
  wasSent = false;
  isOpen = true;
  /** The error of the live run, if the connection was lost because of one. */
  connectionError: Error | undefined;
  sequence = -1;
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly #options: OpenRequestOptions;
  #controller!: ReadableStreamDefaultController<Chunk>;
  #replayFilter: ReplayFilter | undefined;
  #resolve!: (stream: ReadableStream<Chunk> | null) => void;
  #reject!: (error: Error) => void;

  constructor(options: OpenRequestOptions) {
    this.#options = options;
    this.kind = options.kind;
    this.chatId = options.chatId;
    this.createFrame = options.createFrame;
    this.received = options.received;
    this.chunks = new ReadableStream<Chunk>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => this.#cancel(),
    });
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // A rejection is not unhandled if only the stream is read.
    this.response.catch(() => {});
    options.abortSignal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Whether the client has received the beginning of the message. */
  get hasStarted(): boolean {
    return this.received.hasStarted;
  }

  /** The connection was lost, with the error of the live run if there was one. */
  disconnected(error: Error | undefined): void {
    this.connectionError = error;
    this.requestId = undefined;
    this.sequence = -1;
    clearTimeout(this.timer);
  }

  /** The chunks that follow replay the message from its beginning. */
  startReplay(): void {
    this.#replayFilter = new ReplayFilter(this.received);
  }

  /** The chunks that follow are all new. */
  endReplay(): void {
    this.#replayFilter = undefined;
  }

  accept(): void {
    this.connectionError = undefined;
    this.#resolve(this.chunks);
  }

  enqueue(chunk: Chunk): void {
    this.accept();
    const needed = this.#replayFilter?.filter(chunk) ?? [chunk];
    if (this.#replayFilter === undefined) this.received.apply(chunk);
    for (const each of needed) this.#controller.enqueue(each);
  }

  /** Complete the stream from the stored message; false if the client has received another one. */
  complete(
    message: { parts: readonly Chunk[]; metadata?: unknown },
    isWaiting: boolean,
    major: Major,
  ): boolean {
    const needed = new ReplayFilter(this.received).complete(message.parts, major);
    if (needed === undefined) return false;
    for (const chunk of needed) this.#controller.enqueue(chunk);
    const { metadata: messageMetadata } = message;
    this.#controller.enqueue(
      this.connectionError !== undefined
        ? { type: "error", errorText: this.connectionError.message }
        : {
            type: "finish",
            finishReason: isWaiting ? "tool-calls" : "other",
            ...(messageMetadata !== undefined && { messageMetadata }),
          },
    );
    this.close();
    return true;
  }

  close(): void {
    if (!this.#end()) return;
    this.#resolve(this.chunks);
    this.#controller.close();
  }

  /** Resolve `response` to null: no turn is running. */
  closeWithoutResponse(): void {
    if (!this.#end()) return;
    this.#resolve(null);
    this.#controller.close();
  }

  fail(error: Error): void {
    if (!this.#end()) return;
    this.#reject(error);
    this.#controller.error(error);
  }

  readonly #onAbort = (): void => {
    const { abortSignal } = this.#options;
    if (!this.isOpen) return;
    this.#cancel();
    const { reason } = abortSignal ?? {};
    this.#reject(reason instanceof Error ? reason : new DOMException("Aborted.", "AbortError"));
    this.#controller.close();
  };

  #cancel(): void {
    if (this.#end()) this.#options.onCancel(this);
  }

  /** Mark the request as ended; returns whether it was open. */
  #end(): boolean {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    clearTimeout(this.timer);
    this.#options.abortSignal?.removeEventListener("abort", this.#onAbort);
    return wasOpen;
  }
}

/** The operations of the transport that its open requests use. */
export interface RequestConnection {
  /** Send a frame; it is dropped without a connection. */
  send(frame: object): void;
  /** The server violated the protocol; the connection must be replaced. */
  protocolError(error: Error): void;
  loadChat?: ((chatId: string) => Promise<StoredChat<unknown> | undefined>) | undefined;
  readonly major: () => Promise<Major>;
}

/** Milliseconds before a running turn that cannot be resumed is tried again. */
const RESUME_RETRY_DELAY = 1_000;

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The refusal that an `error` frame carries. */
export function errorOfFrame({ errorText, code }: Frame): Error {
  const message = typeof errorText === "string" ? errorText : "The server refused the request.";
  return typeof code === "string" ? refusalFromCode(message, code) : new Error(message);
}

/** The open requests of a transport, which are resumed on each new connection. */
export class OpenRequests {
  readonly #connection: RequestConnection;
  readonly #requests = new Set<OpenRequest>();
  #sentCount = 0;

  constructor(connection: RequestConnection) {
    this.#connection = connection;
  }

  get isEmpty(): boolean {
    return this.#requests.size === 0;
  }

  add(request: OpenRequest, isConnected: boolean): void {
    this.#requests.add(request);
    if (isConnected) void this.#send(request, request.kind);
  }

  /** The connection is open: send or resume every open request. */
  connected(): void {
    for (const request of this.#requests) {
      if (request.wasSent) this.#resume(request);
      else void this.#send(request, request.kind);
    }
  }

  /**
   * The connection was lost. Requests are resumed on the next one; those whose turn has ended by
   * then fail with `error`, if there is one.
   */
  disconnected(error: Error | undefined): void {
    for (const request of this.#requests) request.disconnected(error);
  }

  /** Fail every open request. */
  fail(error: Error): void {
    for (const request of [...this.#requests]) this.#fail(request, error);
  }

  /** The reader of a request has cancelled it. */
  cancelled(request: OpenRequest): void {
    this.#requests.delete(request);
    const { requestId, wasSent } = request;
    if (requestId !== undefined && wasSent) this.#connection.send({ type: "abort", requestId });
  }

  /** Dispatch a frame to its request; heartbeats and frames of ended requests are ignored. */
  receive(frame: Frame): void {
    const request = [...this.#requests].find(({ requestId }) => requestId === frame.requestId);
    if (request === undefined) return;
    switch (frame.type) {
      case "start":
        request.accept();
        break;
      case "chunk":
        this.#receiveChunk(request, frame);
        break;
      case "end":
        this.#requests.delete(request);
        request.close();
        break;
      case "no-active":
        void this.#noActiveTurn(request);
        break;
      case "error":
        this.#fail(request, errorOfFrame(frame));
        break;
      default:
    }
  }

  /** Send a request on the current connection. */
  async #send(request: OpenRequest, type: "send" | "resume"): Promise<void> {
    this.#sentCount += 1;
    const requestId = `r${this.#sentCount}-${Math.random().toString(36).slice(2)}`;
    request.requestId = requestId;
    try {
      const frame = await request.createFrame(type);
      // The connection may have been lost meanwhile, or the request cancelled.
      if (request.requestId !== requestId || !request.isOpen) return;
      request.wasSent = true;
      this.#connection.send({ ...frame, requestId });
    } catch (error) {
      this.#fail(request, toError(error));
    }
  }

  #resume(request: OpenRequest): void {
    request.sequence = -1;
    if (request.kind === "send" || request.hasStarted) request.startReplay();
    void this.#send(request, "resume");
  }

  #fail(request: OpenRequest, error: Error): void {
    this.#requests.delete(request);
    request.fail(error);
  }

  #receiveChunk(request: OpenRequest, { sequence, chunk }: Frame): void {
    const last = request.sequence;
    if (typeof sequence === "number" && sequence <= last) return;
    if (sequence !== last + 1) {
      this.#connection.protocolError(new Error("The server sent chunks out of order."));
      return;
    }
    request.sequence = sequence;
    request.enqueue(chunk as Chunk);
  }

  /** No turn is running: the turn of an interrupted request has ended, or it never arrived. */
  async #noActiveTurn(request: OpenRequest): Promise<void> {
    request.requestId = undefined;
    if (request.kind === "resume" && !request.hasStarted) {
      this.#requests.delete(request);
      request.closeWithoutResponse();
    } else if (!request.hasStarted && request.connectionError !== undefined) {
      this.#fail(request, request.connectionError);
    } else if (!request.hasStarted) {
      // The server runs the same message and the same decisions only once (A4).
      request.sequence = -1;
      request.endReplay();
      void this.#send(request, "send");
    } else {
      await this.#complete(request).catch((error) => this.#fail(request, toError(error)));
    }
  }

  /** Complete a request from the stored chat. */
  async #complete(request: OpenRequest): Promise<void> {
    const [stored, major] = await Promise.all([
      this.#connection.loadChat?.(request.chatId),
      this.#connection.major(),
    ]);
    if (!request.isOpen || request.requestId !== undefined) return;
    if (stored?.status === "running") {
      request.timer = setTimeout(() => this.#resume(request), RESUME_RETRY_DELAY);
      return;
    }
    this.#requests.delete(request);
    const messages = (stored?.messages ?? []) as { id: string; parts: Chunk[] }[];
    const message = messages.find(({ id }) => id === request.received.messageId);
    const isWaiting = stored?.status === "waiting";
    if (message && request.complete(message, isWaiting, major)) return;
    request.fail(networkError("was lost, and the answer with it"));
  }
}
