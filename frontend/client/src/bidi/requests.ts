import { refusalOfCode } from "../refusals.ts";
import type { StoredChat } from "../stored-chat.ts";
import type { OpenRequest } from "./open-request.ts";
import type { Chunk } from "./pieces.ts";
import { networkError } from "./socket.ts";

/** A frame of the server, as far as it has been looked at. */
export interface Frame {
  readonly type?: unknown;
  readonly requestId?: unknown;
  readonly [key: string]: unknown;
}

/** What the requests of a connection need of it. */
export interface Line {
  /** Send a frame; without a connection it is lost. */
  send(frame: object): void;
  /** What the server says makes no sense; the connection is of no use. */
  broken(error: Error): void;
  /** The chat as the server holds it, where it can be asked. */
  stored?: ((chatId: string) => Promise<StoredChat<unknown> | undefined>) | undefined;
  readonly major: 6 | 7;
}

/** Milliseconds between two questions for an answer that goes on and cannot be joined. */
const STILL_RUNNING = 1_000;

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The refusal that an `error` frame tells. */
export function errorOf({ errorText, code }: Frame): Error {
  const sentence = typeof errorText === "string" ? errorText : "The server refused the request.";
  return typeof code === "string" ? refusalOfCode(sentence, code) : new Error(sentence);
}

/** The open requests, asked for on one connection after the other. */
export class Requests {
  readonly #line: Line;
  readonly #open = new Set<OpenRequest>();
  #asked = 0;

  constructor(line: Line) {
    this.#line = line;
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  add(request: OpenRequest, isConnected: boolean): void {
    this.#open.add(request);
    if (isConnected) void this.#ask(request, request.kind);
  }

  /** There is a connection: ask for everything that is open. */
  connected(): void {
    for (const request of this.#open) {
      if (request.wasAsked) this.#resume(request);
      else void this.#ask(request, request.kind);
    }
  }

  /**
   * The connection is lost; what was asked for is resumed on the next one. If it is over by then,
   * it has ended for that reason, where there is one.
   */
  lost(reason: Error | undefined): void {
    for (const request of this.#open) request.lost(reason);
  }

  fail(error: Error): void {
    for (const request of [...this.#open]) this.#fail(request, error);
  }

  /** The reader of a request wants no more. */
  left(request: OpenRequest): void {
    this.#open.delete(request);
    const { requestId, wasAsked } = request;
    if (requestId !== undefined && wasAsked) this.#line.send({ type: "abort", requestId });
  }

  /** Take a frame; heartbeats, and what comes after an end, are for nobody. */
  take(frame: Frame): void {
    const request = [...this.#open].find(({ requestId }) => requestId === frame.requestId);
    if (request === undefined) return;
    switch (frame.type) {
      case "start":
        request.accepted();
        break;
      case "chunk":
        this.#chunk(request, frame);
        break;
      case "end":
        this.#open.delete(request);
        request.end();
        break;
      case "no-active":
        void this.#nothingRuns(request);
        break;
      case "error":
        this.#fail(request, errorOf(frame));
        break;
      default:
    }
  }

  /** Ask for a request on the present connection. */
  async #ask(request: OpenRequest, type: "send" | "resume"): Promise<void> {
    this.#asked += 1;
    const requestId = `r${this.#asked}-${Math.random().toString(36).slice(2)}`;
    request.requestId = requestId;
    try {
      const frame = await request.ask(type);
      // The connection may have gone meanwhile, or the reader.
      if (request.requestId !== requestId || !request.isOpen) return;
      request.wasAsked = true;
      this.#line.send({ ...frame, requestId });
    } catch (error) {
      this.#fail(request, asError(error));
    }
  }

  #resume(request: OpenRequest): void {
    request.sequence = -1;
    if (request.kind === "send" || request.hasBegun) request.startOver();
    void this.#ask(request, "resume");
  }

  #fail(request: OpenRequest, error: Error): void {
    this.#open.delete(request);
    request.fail(error);
  }

  #chunk(request: OpenRequest, { sequence, chunk }: Frame): void {
    const last = request.sequence;
    if (typeof sequence === "number" && sequence <= last) return;
    if (sequence !== last + 1) {
      this.#line.broken(new Error("The server sent chunks out of order."));
      return;
    }
    request.sequence = sequence;
    request.take(chunk as Chunk);
  }

  /** A request that was cut off has nothing to resume: it is over, or it never arrived. */
  async #nothingRuns(request: OpenRequest): Promise<void> {
    request.requestId = undefined;
    if (request.kind === "resume" && !request.hasBegun) {
      this.#open.delete(request);
      request.endWithNothing();
    } else if (!request.hasBegun && request.reason !== undefined) {
      this.#fail(request, request.reason);
    } else if (!request.hasBegun) {
      // The same message and the same answers again run nothing a second time (A4).
      request.sequence = -1;
      request.goOn();
      void this.#ask(request, "send");
    } else {
      await this.#settle(request).catch((error) => this.#fail(request, asError(error)));
    }
  }

  /** End a request with what the server has stored of its answer. */
  async #settle(request: OpenRequest): Promise<void> {
    const stored = await this.#line.stored?.(request.chatId);
    if (!request.isOpen || request.requestId !== undefined) return;
    if (stored?.status === "running") {
      // It runs, yet this client cannot join it now.
      request.timer = setTimeout(() => this.#resume(request), STILL_RUNNING);
      return;
    }
    this.#open.delete(request);
    const messages = (stored?.messages ?? []) as { id: string; parts: Chunk[] }[];
    const message = messages.find(({ id }) => id === request.have.messageId);
    const isWaiting = stored?.status === "waiting";
    if (message && request.settle(message, isWaiting, this.#line.major)) return;
    request.fail(networkError("was lost, and the answer with it"));
  }
}
