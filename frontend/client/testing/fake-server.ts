import type { Chunk } from "./chunks.ts";

/** A request as the server gets it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Record<string, unknown>;
  readonly signal: AbortSignal | undefined;
}

/** What the server says to one request. */
export type Say = (asked: Asked) => Response | Promise<Response>;

/** A stream that a test feeds; until it ends, the response is open. */
export class Feed {
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.#controller = controller;
    },
  });

  readonly say: Say = () => new Response(this.#body);

  write(chunks: readonly Chunk[]): void {
    for (const chunk of chunks) {
      this.#controller?.enqueue(this.#encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`));
    }
  }

  end(): void {
    this.#controller?.enqueue(this.#encoder.encode("data: [DONE]\n\n"));
    this.#controller?.close();
  }

  /** Break the connection, as the browsers tell it. */
  cut(): void {
    this.#controller?.error(new TypeError("network error"));
  }
}

/** A whole stream. */
export function streams(chunks: readonly Chunk[]): Say {
  return () => {
    const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
    return new Response(`${data}data: [DONE]\n\n`);
  };
}

export function refuses(status: number, code: string, sentence: string): Say {
  return () => new Response(sentence, { status, headers: { "x-error-code": code } });
}

const NOTHING: Say = () => new Response(null, { status: 204 });

/** A server as `fetch` sees it: what it says next to each kind of request. */
export class FakeServer {
  readonly asked: Asked[] = [];
  /** Answers to posts, in order. */
  readonly posts: Say[] = [];
  /** What a resume gets. */
  resumed: Say = NOTHING;
  stopped: Say = NOTHING;
  /** What `GET /chats/{id}` gives. */
  stored: Say = refuses(404, "unknown", "There is no such chat.");

  readonly fetch: typeof fetch = async (input, init) => {
    const { pathname } = new URL(String(input), "http://page");
    const asked: Asked = {
      method: init?.method ?? "GET",
      path: pathname,
      headers: Object.fromEntries(new Headers(init?.headers)),
      body: typeof init?.body === "string" ? JSON.parse(init.body) : {},
      signal: init?.signal ?? undefined,
    };
    this.asked.push(asked);
    return this.#say(asked)(asked);
  };

  /** The requests to send something, in order. */
  get sent(): Asked[] {
    return this.asked.filter(({ method, path }) => method === "POST" && path === "/api/chat");
  }

  /** What was asked for, each as `METHOD path`. */
  get log(): string[] {
    return this.asked.map(({ method, path }) => `${method} ${path}`);
  }

  #say({ method, path }: Asked): Say {
    if (path.endsWith("/stop")) return this.stopped;
    if (path.endsWith("/stream")) return this.resumed;
    if (path.startsWith("/api/chats/")) return this.stored;
    if (method === "POST") return this.posts.shift() ?? refuses(500, "internal", "Not expected.");
    return refuses(404, "unknown", "There is no such place.");
  }
}

/** A chat as the server stores it. */
export function storedAs(status: string, messages: readonly object[]): Say {
  return () => Response.json({ id: "chat", title: "A chat", messages, status });
}
