/** Which side an entry comes from. */
export type Direction = "client" | "server";

/** What an entry is: a whole request, a part of a message's stream, or a frame of a socket. */
export type EntryKind = "request" | "chunk" | "frame";

/** One thing that went over the wire. */
export interface Entry {
  readonly seq: number;
  readonly turn: number;
  readonly dir: Direction;
  readonly kind: EntryKind;
  /** Whole milliseconds since the entry before it. */
  readonly delta_ms: number;
  readonly body: object;
}

/** Everything that went over the wire for the message that is being written or was written last. */
export class WireLog {
  #entries: Entry[] = [];
  #turn = 0;
  #created = new Date();
  #last = performance.now();
  readonly #listeners = new Set<() => void>();

  /** A new exchange begins: what was kept of the last one goes. */
  clear(): void {
    this.#entries = [];
    this.#turn = 0;
    this.#created = new Date();
    this.#last = performance.now();
    this.#tell();
  }

  /** A request begins a turn of the exchange. */
  begin(body: object): void {
    this.#turn += 1;
    this.add("client", "request", body);
  }

  add(dir: Direction, kind: EntryKind, body: object): void {
    const now = performance.now();
    const delta_ms = Math.round(now - this.#last);
    // What rounding takes from one pause is given to the next.
    this.#last += delta_ms;
    const seq = this.#entries.length + 1;
    this.#entries.push({ seq, turn: this.#turn, dir, kind, delta_ms, body });
    this.#tell();
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** The entries as a recording of a chat: JSON Lines, first a line that says what it is. */
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

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
