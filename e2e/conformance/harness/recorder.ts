import type { AiSdk } from "./ai-sdk.ts";
import { type Chunk, SseParser } from "./sse-parser.ts";
import type { ChangeNotifier } from "./waiting.ts";

/** One request of a chat and its response. */
export interface Turn {
  readonly kind: "send" | "resume";
  /** The body of the request, parsed; undefined for a resume. */
  readonly body: Record<string, unknown> | undefined;
  readonly chunks: readonly Chunk[];
  status: number;
  errorCode: string | null;
  /** Why there is no response: the error of `fetch` and its cause. */
  error?: string;
  /** Violations of the framing and of the chunk schemas. */
  readonly faults: string[];
  /** Whether the response has ended, successfully or not. */
  ended: boolean;
}

const HEADERS = {
  "content-type": /^text\/event-stream\b/,
  "cache-control": /^no-cache$/,
  "x-accel-buffering": /^no$/,
  "x-vercel-ai-ui-message-stream": /^v1$/,
};

/** The arrays to which the chunks and the faults of a turn are appended. */
export type TurnArrays = Pick<Turn, "chunks" | "faults">;

/** Records every request and chunk of a `fetch`, and validates each chunk. */
export class Recorder {
  readonly turns: Turn[] = [];
  readonly #validators: readonly AiSdk[];
  readonly #changes: ChangeNotifier;
  readonly #maxPosts: number;
  readonly #onPost: () => void;
  readonly #onResponse: () => void;
  readonly #onChunk: (turn: Turn, chunk: Chunk) => void;
  readonly #fetch: typeof fetch;
  #pending: Promise<void>[] = [];

  /** `maxPosts` ends a loop: further posts fail like a network error. */
  constructor(options: {
    validators: readonly AiSdk[];
    changes: ChangeNotifier;
    maxPosts: number;
    /** Called before a post is sent. */
    onPost?: () => void;
    /** Called when the headers of a response were received, or when the request has failed. */
    onResponse?: () => void;
    onChunk?: (turn: Turn, chunk: Chunk) => void;
    fetch?: typeof fetch;
  }) {
    this.#validators = options.validators;
    this.#changes = options.changes;
    this.#maxPosts = options.maxPosts;
    this.#onPost = options.onPost ?? (() => {});
    this.#onResponse = options.onResponse ?? (() => {});
    this.#onChunk = options.onChunk ?? (() => {});
    this.#fetch = options.fetch ?? fetchWithoutConnectTimeout;
  }

  get posts(): readonly Turn[] {
    return this.turns.filter((turn) => turn.kind === "send");
  }

  get isBusy(): boolean {
    return this.turns.some((turn) => !turn.ended);
  }

  /** The faults of all turns, after the last response has ended and all chunks are validated. */
  async faults(): Promise<string[]> {
    while (this.#pending.length > 0) await Promise.all(this.#pending.splice(0));
    return this.turns.flatMap((turn, index) =>
      turn.faults.map((fault) => `${turn.kind} ${index + 1}: ${fault}`),
    );
  }

  /** Record a request before it is sent; throws for a post beyond the limit. */
  begin(kind: Turn["kind"], body: Turn["body"], arrays: TurnArrays): Turn {
    const turn: Turn = { kind, body, ...arrays, status: 0, errorCode: null, ended: false };
    this.turns.push(turn);
    if (kind === "send" && this.posts.length > this.#maxPosts) {
      this.end(turn);
      throw new Error(`post ${this.posts.length} exceeds the limit; the client loops`);
    }
    if (kind === "send") this.#onPost();
    return turn;
  }

  /** Record the status of a response, or 0 if there is none. */
  respond(turn: Turn, status = 0, errorCode: string | null = null): void {
    turn.status = status;
    turn.errorCode = errorCode;
    this.#onResponse();
  }

  /** Validate a chunk that was appended to its turn. */
  addChunk(turn: Turn, chunk: Chunk): void {
    this.#pending.push(this.#validate(turn, chunk));
    this.#onChunk(turn, chunk);
  }

  end(turn: Turn): void {
    turn.ended = true;
    this.#changes.notify();
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const parser = new SseParser();
    const turn = this.begin(
      init?.method === "POST" ? "send" : "resume",
      typeof init?.body === "string" ? JSON.parse(init.body) : undefined,
      { chunks: parser.chunks, faults: parser.faults },
    );
    let response: Response;
    try {
      response = await this.#fetch(input, init);
    } catch (error) {
      turn.error = errorText(error);
      this.end(turn);
      this.respond(turn);
      throw error;
    }
    this.respond(turn, response.status, response.headers.get("x-error-code"));
    if (response.status !== 200 || response.body === null) {
      this.end(turn);
      return response;
    }
    for (const [name, wanted] of Object.entries(HEADERS)) {
      const value = response.headers.get(name) ?? "";
      if (!wanted.test(value)) turn.faults.push(`header ${name}: ${JSON.stringify(value)}`);
    }
    return new Response(this.#observe(response.body, turn, parser), {
      status: response.status,
      headers: response.headers,
    });
  };

  /**
   * A copy of the body for the client, while the recorder reads to the end: a client stops reading
   * at an error chunk, but the chunks after it are validated too.
   */
  #observe(
    body: ReadableStream<Uint8Array>,
    turn: Turn,
    parser: SseParser,
  ): ReadableStream<Uint8Array> {
    const [clientBody, recordedBody] = body.tee();
    this.#pending.push(this.#record(recordedBody.getReader(), turn, parser));
    return clientBody;
  }

  async #record(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    turn: Turn,
    parser: SseParser,
  ): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (const chunk of parser.feed(decoder.decode(value, { stream: true }))) {
          this.addChunk(turn, chunk);
        }
        this.#changes.notify();
      }
      parser.end();
    } catch {
      // The connection was lost or the client has stopped; the chunks until then are recorded.
    }
    this.end(turn);
  }

  async #validate(turn: Turn, chunk: Chunk): Promise<void> {
    for (const validator of this.#validators) {
      const fault = await validator.chunkFault(chunk);
      if (fault !== undefined) turn.faults.push(`${JSON.stringify(chunk)} is not valid: ${fault}`);
    }
  }
}

/**
 * `fetch`, repeated if Node.js gives up connecting after 10 s, which a busy machine may take. The
 * request was not sent in that case.
 */
export async function fetchWithoutConnectTimeout(
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  for (;;) {
    try {
      return await fetch(input, init);
    } catch (error) {
      const { cause } = error as { cause?: { code?: unknown } };
      if (cause?.code !== "UND_ERR_CONNECT_TIMEOUT") throw error;
    }
  }
}

function errorText(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return cause === undefined ? String(error) : `${error}, ${cause}`;
}

/** The turns as text, for the message of a failure. */
export function trace(turns: readonly Turn[]): string {
  return turns
    .map((turn, index) => {
      const reason = turn.errorCode ?? turn.error;
      const code = reason ? ` ${reason}` : "";
      const heading = `-- ${turn.kind} ${index + 1}: ${turn.status}${code}${turn.ended ? "" : " (open)"}`;
      return [heading, ...turn.chunks.map((chunk) => `   ${JSON.stringify(chunk)}`)].join("\n");
    })
    .join("\n");
}
