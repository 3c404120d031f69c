import type { Recorder, Turn } from "./recorder.ts";
import type { Chunk } from "./sse.ts";

/** The statuses that HTTP gives to the codes of refusals; all others are 409. */
const STATUSES: Readonly<Record<string, number>> = {
  malformed: 400,
  unauthenticated: 401,
  unknown: 404,
  too_large: 413,
  unsupported_media_type: 415,
  too_many_requests: 429,
  internal: 500,
  unavailable: 503,
};

/** Frames that belong to no request: heartbeats, and what a live socket tells. */
const OF_NOBODY = new Set(["-", "live"]);

interface Frame {
  readonly type?: unknown;
  readonly requestId?: unknown;
  readonly [key: string]: unknown;
}

/** A turn that is being written down. */
interface Kept {
  readonly turn: Turn;
  readonly chunks: Chunk[];
  readonly faults: string[];
}

/** The requests of one socket, told to a recorder as if each were an HTTP request of its own. */
export class SocketTurns {
  readonly #recorder: Recorder;
  readonly #turns = new Map<string, Kept>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** Take what the client is about to say; a post too many throws. */
  sent(text: string): void {
    const frame = JSON.parse(text) as Frame;
    const requestId = String(frame.requestId);
    if (frame.type === "abort") {
      // The server says nothing more, or has said it already.
      this.#end(requestId);
      this.#turns.delete(requestId);
      return;
    }
    const kept = { chunks: [] as Chunk[], faults: [] as string[] };
    const kind = frame.type === "resume" ? "resume" : "send";
    const body = kind === "send" ? { ...frame } : undefined;
    this.#turns.set(requestId, { ...kept, turn: this.#recorder.begin(kind, body, kept) });
  }

  /** Take what the server has said. */
  came(text: string): void {
    const frame = JSON.parse(text) as Frame;
    const requestId = String(frame.requestId);
    const kept = this.#turns.get(requestId);
    if (OF_NOBODY.has(requestId) || kept === undefined) return;
    const { turn, faults } = kept;
    if (turn.ended) faults.push(`a frame after the end: ${text}`);
    switch (frame.type) {
      case "start":
        if (turn.kind === "send" || turn.status !== 0) faults.push("a start out of place");
        this.#accept(turn);
        break;
      case "chunk":
        this.#chunk(kept, frame);
        break;
      case "end":
        if (turn.chunks.length === 0) faults.push("an end without any chunk");
        this.#end(requestId);
        break;
      case "no-active":
        if (turn.kind === "send") faults.push("no-active on a send");
        this.#recorder.answered(turn, 204);
        this.#end(requestId);
        break;
      case "error":
        this.#refuse(kept, frame);
        this.#end(requestId);
        break;
      default:
        faults.push(`not a frame: ${text}`);
    }
  }

  /** The socket is gone, and every open request with it. */
  closed(): void {
    for (const requestId of this.#turns.keys()) this.#end(requestId);
  }

  #chunk(kept: Kept, frame: Frame): void {
    if (frame.sequence !== kept.chunks.length) {
      kept.faults.push(`sequence ${frame.sequence} instead of ${kept.chunks.length}`);
    }
    if (kept.turn.kind === "resume" && kept.turn.status === 0) kept.faults.push("no start");
    this.#accept(kept.turn);
    const chunk = frame.chunk as Chunk;
    kept.chunks.push(chunk);
    this.#recorder.came(kept.turn, chunk);
  }

  #refuse({ turn, faults }: Kept, frame: Frame): void {
    if (turn.chunks.length > 0) faults.push(`an error after chunks: ${frame.code}`);
    if (typeof frame.errorText !== "string" || frame.errorText === "") {
      faults.push("an error without a sentence");
    }
    const code = String(frame.code);
    this.#recorder.answered(turn, STATUSES[code] ?? 409, code);
  }

  #accept(turn: Turn): void {
    if (turn.status === 0) this.#recorder.answered(turn, 200);
  }

  #end(requestId: string): void {
    const kept = this.#turns.get(requestId);
    if (kept === undefined || kept.turn.ended) return;
    if (kept.turn.status === 0) this.#recorder.answered(kept.turn);
    this.#recorder.end(kept.turn);
  }
}

/** The open sockets of each chat. */
const sockets = new Map<string, Set<WebSocket>>();

/** What a client opens a socket with: it says in the handshake who it is, and all is recorded. */
export function recordedSocket(
  recorder: Recorder,
  chatId: string,
  headers: Record<string, string>,
): typeof WebSocket {
  return class extends WebSocket {
    readonly #turns = new SocketTurns(recorder);

    constructor(url: string | URL, protocols?: string | string[]) {
      // Node.js takes headers, and protocols among them, where a browser takes protocols alone.
      super(url, { headers, ...(protocols && { protocols }) } as unknown as string[]);
      const open = sockets.get(chatId) ?? new Set();
      sockets.set(chatId, open.add(this));
      this.addEventListener("message", ({ data }) => {
        if (typeof data === "string") this.#turns.came(data);
      });
      this.addEventListener("close", () => {
        open.delete(this);
        this.#turns.closed();
      });
    }

    override send(said: string | ArrayBuffer): void {
      if (typeof said === "string") this.#turns.sent(said);
      super.send(said);
    }
  };
}

export function closeSockets(chatId: string): void {
  for (const socket of sockets.get(chatId) ?? []) socket.close(1000);
  sockets.delete(chatId);
}
