import type { Recorder, Turn } from "./recorder.ts";
import type { Chunk } from "./sse-parser.ts";

/** The HTTP status of each error code; all others are 409. */
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

/** The request ids of frames that belong to no request: heartbeats and live events. */
const NO_REQUEST = new Set(["-", "live"]);

interface Frame {
  readonly type?: unknown;
  readonly requestId?: unknown;
  readonly [key: string]: unknown;
}

/** A turn that is being recorded, with its arrays. */
interface RecordedTurn {
  readonly turn: Turn;
  readonly chunks: Chunk[];
  readonly faults: string[];
}

/** Records the requests of one socket as if each were an HTTP request. */
export class SocketTurns {
  readonly #recorder: Recorder;
  readonly #turns = new Map<string, RecordedTurn>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** Record a frame of the client; throws for a post beyond the limit. */
  onSend(text: string): void {
    const frame = JSON.parse(text) as Frame;
    const requestId = String(frame.requestId);
    if (frame.type === "abort") {
      // The server sends nothing more for this request.
      this.#end(requestId);
      this.#turns.delete(requestId);
      return;
    }
    const arrays = { chunks: [] as Chunk[], faults: [] as string[] };
    const kind = frame.type === "resume" ? "resume" : "send";
    const body = kind === "send" ? { ...frame } : undefined;
    this.#turns.set(requestId, {
      ...arrays,
      turn: this.#recorder.begin(kind, body, arrays),
    });
  }

  /** Record a frame of the server. */
  onMessage(text: string): void {
    const frame = JSON.parse(text) as Frame;
    const requestId = String(frame.requestId);
    const recorded = this.#turns.get(requestId);
    if (NO_REQUEST.has(requestId) || recorded === undefined) return;
    const { turn, faults } = recorded;
    if (turn.ended) faults.push(`a frame after the end: ${text}`);
    switch (frame.type) {
      case "start":
        if (turn.kind === "send" || turn.status !== 0) faults.push("an unexpected start");
        this.#accept(turn);
        break;
      case "chunk":
        this.#chunk(recorded, frame);
        break;
      case "end":
        if (turn.chunks.length === 0) faults.push("an end without any chunk");
        this.#end(requestId);
        break;
      case "no-active":
        if (turn.kind === "send") faults.push("no-active on a send");
        this.#recorder.respond(turn, 204);
        this.#end(requestId);
        break;
      case "error":
        this.#refuse(recorded, frame);
        this.#end(requestId);
        break;
      default:
        faults.push(`not a frame: ${text}`);
    }
  }

  /** The socket was closed, which ends its open requests. */
  onClose(): void {
    for (const requestId of this.#turns.keys()) this.#end(requestId);
  }

  #chunk(recorded: RecordedTurn, frame: Frame): void {
    if (frame.sequence !== recorded.chunks.length) {
      recorded.faults.push(`sequence ${frame.sequence} instead of ${recorded.chunks.length}`);
    }
    if (recorded.turn.kind === "resume" && recorded.turn.status === 0)
      recorded.faults.push("no start");
    this.#accept(recorded.turn);
    const chunk = frame.chunk as Chunk;
    recorded.chunks.push(chunk);
    this.#recorder.addChunk(recorded.turn, chunk);
  }

  #refuse({ turn, faults }: RecordedTurn, frame: Frame): void {
    if (turn.chunks.length > 0) faults.push(`an error after chunks: ${frame.code}`);
    if (typeof frame.errorText !== "string" || frame.errorText === "") {
      faults.push("an error without a sentence");
    }
    const code = String(frame.code);
    this.#recorder.respond(turn, STATUSES[code] ?? 409, code);
  }

  #accept(turn: Turn): void {
    if (turn.status === 0) this.#recorder.respond(turn, 200);
  }

  #end(requestId: string): void {
    const recorded = this.#turns.get(requestId);
    if (recorded === undefined || recorded.turn.ended) return;
    if (recorded.turn.status === 0) this.#recorder.respond(recorded.turn);
    this.#recorder.end(recorded.turn);
  }
}

/** The open sockets of each chat. */
const openSockets = new Map<string, Set<WebSocket>>();

/** A recorded WebSocket class that sends headers in the handshake, such as that of the user. */
export function createRecordedSocket(
  recorder: Recorder,
  chatId: string,
  headers: Record<string, string>,
): typeof WebSocket {
  return class extends WebSocket {
    readonly #turns = new SocketTurns(recorder);

    constructor(url: string | URL, protocols?: string | string[]) {
      // The second parameter may be an object with headers and protocols in Node.js only.
      super(url, { headers, ...(protocols && { protocols }) } as unknown as string[]);
      const chatSockets = openSockets.get(chatId) ?? new Set();
      openSockets.set(chatId, chatSockets.add(this));
      this.addEventListener("message", ({ data }) => {
        if (typeof data === "string") this.#turns.onMessage(data);
      });
      this.addEventListener("close", () => {
        chatSockets.delete(this);
        this.#turns.onClose();
      });
    }

    override send(data: string | ArrayBuffer): void {
      if (typeof data === "string") this.#turns.onSend(data);
      super.send(data);
    }
  };
}

export function closeSockets(chatId: string): void {
  for (const socket of openSockets.get(chatId) ?? []) socket.close(1000);
  openSockets.delete(chatId);
}
