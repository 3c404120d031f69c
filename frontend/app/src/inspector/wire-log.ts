import type { UIMessage, UIMessageChunk } from "ai";

/** The side that an entry comes from. */
export type Direction = "client" | "server";

/** The kind of an entry: a request, a chunk of a message stream, or a frame of a socket. */
export type EntryKind = "request" | "chunk" | "frame";

/** One request, chunk or frame. */
export interface Entry {
  readonly seq: number;
  readonly turn: number;
  readonly dir: Direction;
  readonly kind: EntryKind;
  /** Whole milliseconds since the previous entry. */
  readonly delta_ms: number;
  readonly body: object;
}

/** The requests, chunks and frames of the current exchange. */
export class WireLog {
  #entries: Entry[] = [];
  #turn = 0;
  #created = new Date();
  #last = performance.now();
  readonly #listeners = new Set<() => void>();

  /** Discard the entries: a new exchange begins. */
  clear(): void {
    this.#entries = [];
    this.#turn = 0;
    this.#created = new Date();
    this.#last = performance.now();
    this.#notify();
  }

  /** Add a request, which begins a turn of the exchange. */
  addRequest(body: object): void {
    this.#turn += 1;
    this.add("client", "request", body);
  }

  add(dir: Direction, kind: EntryKind, body: object): void {
    const now = performance.now();
    const delta_ms = Math.round(now - this.#last);
    // The rounding error is carried over to the next entry.
    this.#last += delta_ms;
    const seq = this.#entries.length + 1;
    this.#entries.push({ seq, turn: this.#turn, dir, kind, delta_ms, body });
    this.#notify();
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** The entries as a recording of a chat: JSON Lines, with a header as the first line. */
  recording(chat: string): string {
    const header = {
      format: "sluicegate-recording",
      version: 1,
      created: this.#created.toISOString(),
      redaction: [],
      app: "page",
      chat,
    };
    return [header, ...this.#entries].map((line) => `${JSON.stringify(line)}\n`).join("");
  }

  readonly count = (): number => this.#entries.length;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** The body of `POST /chat`. */
export interface PostBody {
  readonly id: string;
  readonly messages: readonly UIMessage[];
  readonly [key: string]: unknown;
}

/** The properties that the server reads besides the last message; it ignores the history. */
const RECORDED_PROPERTIES = ["id", "trigger", "messageId", "edits", "remember"];

/** Records the requests, chunks and frames of a chat in a log. */
export class WireRecorder {
  readonly #log: WireLog;

  constructor(log: WireLog) {
    this.#log = log;
  }

  send(body: PostBody, release: string): void {
    const message = body.messages.at(-1);
    // A user message begins an exchange; any other request continues one.
    if (message?.role === "user") this.#log.clear();
    const recorded = Object.entries(body).filter(([key]) => RECORDED_PROPERTIES.includes(key));
    this.#addRequest({ type: "send", ...Object.fromEntries(recorded), message }, release);
  }

  resume(chatId: string, release: string): void {
    this.#log.clear();
    this.#addRequest({ type: "resume", id: chatId }, release);
  }

  stop(chatId: string, release: string): void {
    this.#addRequest({ type: "stop", id: chatId }, release);
  }

  chunk(chunk: UIMessageChunk): void {
    this.#log.add("server", "chunk", chunk);
  }

  frame(dir: Direction, frame: object): void {
    this.#log.add(dir, "frame", frame);
  }

  #addRequest(request: object, release: string): void {
    this.#log.addRequest({ ...request, headers: { "x-ai-sdk": "7", "x-release": release } });
  }
}
