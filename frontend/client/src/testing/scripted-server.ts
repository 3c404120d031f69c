import type { Chunk } from "./chunks.ts";

/** A request that the server has received. */
export interface ServerRequest {
  /** The method, such as `POST`. */
  readonly method: string;
  /** The path of the URL, without its query. */
  readonly path: string;
  /** The headers, by their names in lower case. */
  readonly headers: Record<string, string>;
  /** The JSON of the body; empty without one. */
  readonly body: Record<string, unknown>;
  /** The signal with which the client may cancel the request. */
  readonly signal: AbortSignal | undefined;
}

/** Creates the response to one request. */
export type Responder = (request: ServerRequest) => Response | Promise<Response>;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
  "x-vercel-ai-ui-message-stream": "v1",
};

/** A response stream that a test writes to; the response is open until `end` or `fail`. */
export class ControlledStream {
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.#controller = controller;
    },
  });

  /** Responds with this stream. */
  readonly respond: Responder = () => new Response(this.#body, { headers: HEADERS });

  /** Send chunks. */
  write(chunks: readonly Chunk[]): void {
    for (const chunk of chunks) {
      this.#controller?.enqueue(this.#encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`));
    }
  }

  /** Send the terminator and end the response. */
  end(): void {
    this.#controller?.enqueue(this.#encoder.encode("data: [DONE]\n\n"));
    this.#controller?.close();
  }

  /** Break the connection with the error that browsers report. */
  fail(): void {
    this.#controller?.error(new TypeError("network error"));
  }
}

/** A response with the framing of the server: a comment, the chunks, the terminator. */
export function sseResponse(chunks: readonly Chunk[]): Response {
  const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
  return new Response(`: stream-open\n\n${data}data: [DONE]\n\n`, { headers: HEADERS });
}

/** Responds with a complete stream. */
export function streamOf(chunks: readonly Chunk[]): Responder {
  return () => sseResponse(chunks);
}

/** A `fetch` that returns the responses in order, and the last one for all further requests. */
export function scriptedFetch(responses: readonly (readonly Chunk[] | Response)[]): typeof fetch {
  let count = 0;
  return async () => {
    const next = responses[Math.min(count, responses.length - 1)] ?? [];
    count += 1;
    return next instanceof Response ? next.clone() : sseResponse(next);
  };
}

/** Responds with a refusal. */
export function refusal(status: number, code: string, sentence: string): Responder {
  return () => new Response(sentence, { status, headers: { "x-error-code": code } });
}

const NO_CONTENT: Responder = () => new Response(null, { status: 204 });

/** A server behind `fetch`, with a responder for each kind of request. */
export class ScriptedServer {
  /** All requests, in order. */
  readonly requests: ServerRequest[] = [];
  /** The responders of `POST /api/chat`, in order; each answers once. */
  readonly postResponders: Responder[] = [];
  /** The responder of a resume. */
  onResume: Responder = NO_CONTENT;
  /** The responder of a stop. */
  onStop: Responder = NO_CONTENT;
  /** The responder of `GET /api/chats/{id}`. */
  onLoad: Responder = refusal(404, "unknown", "There is no such chat.");

  /** The `fetch` of a transport or a hook. */
  readonly fetch: typeof fetch = async (input, init) => {
    const { pathname } = new URL(String(input), "http://page");
    const request: ServerRequest = {
      method: init?.method ?? "GET",
      path: pathname,
      headers: Object.fromEntries(new Headers(init?.headers)),
      body: typeof init?.body === "string" ? JSON.parse(init.body) : {},
      signal: init?.signal ?? undefined,
    };
    this.requests.push(request);
    return this.#responder(request)(request);
  };

  /** The requests of `POST /api/chat`, in order. */
  get posts(): ServerRequest[] {
    return this.requests.filter(({ method, path }) => method === "POST" && path === "/api/chat");
  }

  /** All requests, each as `METHOD path`. */
  get log(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`);
  }

  #responder({ method, path }: ServerRequest): Responder {
    if (path.endsWith("/stop")) return this.onStop;
    if (path.endsWith("/stream")) return this.onResume;
    if (path.startsWith("/api/chats/")) return this.onLoad;
    if (method === "POST")
      return this.postResponders.shift() ?? refusal(500, "internal", "Not expected.");
    return refusal(404, "unknown", "There is no such place.");
  }
}

/** Responds with a stored chat. */
export function storedChat(status: string, messages: readonly object[]): Responder {
  return () => Response.json({ id: "chat", title: "A chat", messages, status });
}
