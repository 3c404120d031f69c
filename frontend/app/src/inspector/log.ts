/** Which side an entry comes from. */
export type Direction = "client" | "server";

/** What an entry is: a whole request, a part of a message's stream, or a frame of a socket. */
export type EntryKind = "request" | "chunk" | "frame" | "decision";

/** One thing that went over the wire. */
export interface Entry {
  readonly seq: number;
  readonly turn: number;
  readonly dir: Direction;
  readonly kind: EntryKind;
  /** Milliseconds since the entry before it. */
  readonly delta_ms: number;
  readonly body: unknown;
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
  begin(body: unknown): void {
    this.#turn += 1;
    this.add("client", "request", body);
  }

  add(dir: Direction, kind: EntryKind, body: unknown): void {
    const now = performance.now();
    const delta_ms = Math.round((now - this.#last) * 10) / 10;
    this.#last = now;
    this.#entries.push({ seq: this.#entries.length, turn: this.#turn, dir, kind, delta_ms, body });
    this.#tell();
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** The entries as a recording: JSON Lines, first a line that says what it is. */
  recording(): string {
    const header = {
      format: "sluicegate-recording",
      version: 1,
      created: this.#created.toISOString(),
      redaction: [],
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
