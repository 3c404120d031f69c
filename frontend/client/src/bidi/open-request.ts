import { CatchUp } from "./catch-up.ts";
import type { Chunk, Pieces } from "./pieces.ts";

/** A `send` or `resume` frame without its `requestId`. */
export interface Asking {
  readonly type: "send" | "resume";
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly body: object;
  readonly [key: string]: unknown;
}

/** Makes the frame of a request, with headers and body as they are at that moment. */
export type AskWith = (type: "send" | "resume") => Promise<Asking>;

/** What a request is made of. */
export interface RequestInit {
  readonly kind: "send" | "resume";
  readonly chatId: string;
  readonly ask: AskWith;
  /** What the client holds of the message that the response continues. */
  readonly have: Pieces;
  readonly abortSignal: AbortSignal | undefined;
  /** The reader wants no more. */
  readonly left: (request: OpenRequest) => void;
}

/** A request and its stream, over as many connections as it takes. */
export class OpenRequest {
  readonly kind: "send" | "resume";
  readonly chatId: string;
  readonly ask: AskWith;
  readonly have: Pieces;
  readonly chunks: ReadableStream<Chunk>;
  /** The stream, or null where a resume found nothing that runs. */
  readonly response: Promise<ReadableStream<Chunk> | null>;
  /** On the present connection; undefined while it has not been asked for there. */
  requestId: string | undefined;
  /** Whether it was asked for on an earlier connection. */
  wasAsked = false;
  isOpen = true;
  /** What the server said when the connection went. */
  reason: Error | undefined;
  sequence = -1;
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly #init: RequestInit;
  #controller!: ReadableStreamDefaultController<Chunk>;
  #catchUp: CatchUp | undefined;
  #respond!: (stream: ReadableStream<Chunk> | null) => void;
  #refuse!: (error: Error) => void;

  constructor(init: RequestInit) {
    this.#init = init;
    this.kind = init.kind;
    this.chatId = init.chatId;
    this.ask = init.ask;
    this.have = init.have;
    this.chunks = new ReadableStream<Chunk>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => this.#leave(),
    });
    this.response = new Promise((respond, refuse) => {
      this.#respond = respond;
      this.#refuse = refuse;
    });
    // Nobody may be waiting for it any more when it fails.
    this.response.catch(() => {});
    init.abortSignal?.addEventListener("abort", this.#aborted, { once: true });
  }

  /** Whether chunks have reached the client. */
  get hasBegun(): boolean {
    return this.have.hasStarted;
  }

  /** Forget the connection that is lost. */
  lost(reason: Error | undefined): void {
    this.reason = reason;
    this.requestId = undefined;
    this.sequence = -1;
    clearTimeout(this.timer);
  }

  /** From here on the message is told again from its beginning. */
  startOver(): void {
    this.#catchUp = new CatchUp(this.have);
  }

  /** From here on chunks are new to the client. */
  goOn(): void {
    this.#catchUp = undefined;
  }

  accepted(): void {
    this.reason = undefined;
    this.#respond(this.chunks);
  }

  take(chunk: Chunk): void {
    this.accepted();
    const needed = this.#catchUp?.take(chunk) ?? [chunk];
    if (this.#catchUp === undefined) this.have.apply(chunk);
    for (const each of needed) this.#controller.enqueue(each);
  }

  /**
   * End with the message as it is stored; false if the client holds another one.
   */
  settle(
    message: { parts: readonly Chunk[]; metadata?: unknown },
    isWaiting: boolean,
    major: 6 | 7,
  ): boolean {
    const needed = new CatchUp(this.have).settle(message.parts, major);
    if (needed === undefined) return false;
    for (const each of needed) this.#controller.enqueue(each);
    if (this.reason !== undefined) {
      this.#controller.enqueue({ type: "error", errorText: this.reason.message });
      this.end();
      return true;
    }
    const { metadata: messageMetadata } = message;
    this.#controller.enqueue({
      type: "finish",
      finishReason: isWaiting ? "tool-calls" : "other",
      ...(messageMetadata !== undefined && { messageMetadata }),
    });
    this.end();
    return true;
  }

  end(): void {
    if (!this.#over()) return;
    this.#respond(this.chunks);
    this.#controller.close();
  }

  /** Nothing runs that could be resumed. */
  endWithNothing(): void {
    if (!this.#over()) return;
    this.#respond(null);
    this.#controller.close();
  }

  fail(error: Error): void {
    if (!this.#over()) return;
    this.#refuse(error);
    this.#controller.error(error);
  }

  readonly #aborted = (): void => {
    const { abortSignal } = this.#init;
    if (!this.isOpen) return;
    this.#leave();
    const { reason } = abortSignal ?? {};
    this.#refuse(reason instanceof Error ? reason : new DOMException("Aborted.", "AbortError"));
    this.#controller.close();
  };

  #leave(): void {
    if (this.#over()) this.#init.left(this);
  }

  #over(): boolean {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    clearTimeout(this.timer);
    this.#init.abortSignal?.removeEventListener("abort", this.#aborted);
    return wasOpen;
  }
}
