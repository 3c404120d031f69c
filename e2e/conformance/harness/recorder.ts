import type { Kit } from "./kit.ts";
import { type Chunk, SseText } from "./sse.ts";
import type { Bell } from "./waiting.ts";

/** One request of a chat and its response, as it went over the wire. */
export interface Turn {
  readonly kind: "send" | "resume";
  /** The body of the request, parsed; undefined for a resume. */
  readonly body: Record<string, unknown> | undefined;
  readonly chunks: readonly Chunk[];
  status: number;
  errorCode: string | null;
  /** Framing and schema faults. */
  readonly faults: string[];
  /** Whether the response has ended, whichever way. */
  ended: boolean;
}

const HEADERS = {
  "content-type": /^text\/event-stream\b/,
  "cache-control": /^no-cache$/,
  "x-accel-buffering": /^no$/,
  "x-vercel-ai-ui-message-stream": /^v1$/,
};

/** Where the chunks and the faults of a turn are kept while they come. */
export type Kept = Pick<Turn, "chunks" | "faults">;

/** A `fetch` that counts, keeps every request and chunk, and judges each chunk by the schemas. */
export class Recorder {
  readonly turns: Turn[] = [];
  readonly #judges: readonly Kit[];
  readonly #bell: Bell;
  readonly #mostPosts: number;
  readonly #onPost: () => void;
  readonly #onAnswer: () => void;
  readonly #onChunk: (turn: Turn, chunk: Chunk) => void;
  readonly #inner: typeof fetch;
  #judging: Promise<void>[] = [];

  /** `mostPosts` ends a loop: the post after it fails as a broken network does. */
  constructor(options: {
    judges: readonly Kit[];
    bell: Bell;
    mostPosts: number;
    /** Called before a post goes out. */
    onPost?: () => void;
    /** Called when the head of a response has come, or will not come. */
    onAnswer?: () => void;
    onChunk?: (turn: Turn, chunk: Chunk) => void;
    inner?: typeof fetch;
  }) {
    this.#judges = options.judges;
    this.#bell = options.bell;
    this.#mostPosts = options.mostPosts;
    this.#onPost = options.onPost ?? (() => {});
    this.#onAnswer = options.onAnswer ?? (() => {});
    this.#onChunk = options.onChunk ?? (() => {});
    this.#inner = options.inner ?? fetch;
  }

  get posts(): readonly Turn[] {
    return this.turns.filter((turn) => turn.kind === "send");
  }

  get isBusy(): boolean {
    return this.turns.some((turn) => !turn.ended);
  }

  /** The faults of all turns, after the last response has ended and the last verdict is in. */
  async faults(): Promise<string[]> {
    while (this.#judging.length > 0) await Promise.all(this.#judging.splice(0));
    return this.turns.flatMap((turn, index) =>
      turn.faults.map((fault) => `${turn.kind} ${index + 1}: ${fault}`),
    );
  }

  /** Note a request before it goes out; one post too many throws. */
  begin(kind: Turn["kind"], body: Turn["body"], kept: Kept): Turn {
    const turn: Turn = { kind, body, ...kept, status: 0, errorCode: null, ended: false };
    this.turns.push(turn);
    if (kind === "send" && this.posts.length > this.#mostPosts) {
      this.end(turn);
      throw new Error(`post ${this.posts.length} is one too many; the client loops`);
    }
    if (kind === "send") this.#onPost();
    return turn;
  }

  /** Note how a request is answered, or that no answer will come. */
  answered(turn: Turn, status = 0, errorCode: string | null = null): void {
    turn.status = status;
    turn.errorCode = errorCode;
    this.#onAnswer();
  }

  /** Note a chunk that is kept already. */
  came(turn: Turn, chunk: Chunk): void {
    this.#judging.push(this.#judge(turn, chunk));
    this.#onChunk(turn, chunk);
  }

  end(turn: Turn): void {
    turn.ended = true;
    this.#bell.ring();
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const sse = new SseText();
    const turn = this.begin(
      init?.method === "POST" ? "send" : "resume",
      typeof init?.body === "string" ? JSON.parse(init.body) : undefined,
      { chunks: sse.chunks, faults: sse.faults },
    );
    let response: Response;
    try {
      response = await this.#inner(input, init);
    } catch (fault) {
      this.end(turn);
      this.answered(turn);
      throw fault;
    }
    this.answered(turn, response.status, response.headers.get("x-error-code"));
    if (response.status !== 200 || response.body === null) {
      this.end(turn);
      return response;
    }
    for (const [name, wanted] of Object.entries(HEADERS)) {
      const value = response.headers.get(name) ?? "";
      if (!wanted.test(value)) turn.faults.push(`header ${name}: ${JSON.stringify(value)}`);
    }
    return new Response(this.#watched(response.body, turn, sse), {
      status: response.status,
      headers: response.headers,
    });
  };

  /**
   * What the client reads, while the record goes on to the end: a client that meets an error chunk
   * stops reading, and what comes after it counts.
   */
  #watched(body: ReadableStream<Uint8Array>, turn: Turn, sse: SseText): ReadableStream<Uint8Array> {
    const [read, kept] = body.tee();
    this.#judging.push(this.#record(kept.getReader(), turn, sse));
    return read;
  }

  async #record(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    turn: Turn,
    sse: SseText,
  ): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (const chunk of sse.feed(decoder.decode(value, { stream: true }))) {
          this.came(turn, chunk);
        }
        this.#bell.ring();
      }
      sse.end();
    } catch {
      // The connection broke or the client's stop has cut it; what came until then is recorded.
    }
    this.end(turn);
  }

  async #judge(turn: Turn, chunk: Chunk): Promise<void> {
    for (const judge of this.#judges) {
      const fault = await judge.chunkFault(chunk);
      if (fault !== undefined) turn.faults.push(`${JSON.stringify(chunk)} is not valid: ${fault}`);
    }
  }
}

/** The chunks of a turn on short lines, for the message of a failure. */
export function trace(turns: readonly Turn[]): string {
  return turns
    .map((turn, index) => {
      const code = turn.errorCode ? ` ${turn.errorCode}` : "";
      const head = `-- ${turn.kind} ${index + 1}: ${turn.status}${code}${turn.ended ? "" : " (open)"}`;
      return [head, ...turn.chunks.map((chunk) => `   ${JSON.stringify(chunk)}`)].join("\n");
    })
    .join("\n");
}
