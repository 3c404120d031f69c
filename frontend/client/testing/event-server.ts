import type { UserEvent } from "../src/events/user-events.ts";

/** A `fetch` for `/api/events`: a server with the events of one user, which keeps all of them. */
export class EventServer {
  /** The query of each connection, in order. */
  readonly requests: string[] = [];
  /** Statuses with which the next connections are refused. */
  readonly refusals: number[] = [];
  #events: string[] = [];
  #open = new Set<ReadableStreamDefaultController<Uint8Array>>();
  #encoder = new TextEncoder();

  readonly fetch: typeof fetch = async (input, init) => {
    const url = new URL(String(input), "http://localhost");
    this.requests.push(url.search);
    const status = this.refusals.shift();
    if (status) return new Response("Refused.", { status, headers: { "x-error-code": "test" } });
    const after = url.searchParams.get("after");
    const from = after === null ? this.#events.length : Number(after.split("-")[1]);
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#open.add(controller);
        const first = { type: from <= this.#events.length ? "ready" : "reset" };
        this.#send(`retry: 1000\n\nid: 1-${from}\ndata: ${JSON.stringify(first)}\n\n`, controller);
        for (const text of this.#events.slice(from)) this.#send(text, controller);
      },
      cancel: () => {
        this.#close(own);
      },
    });
    init?.signal?.addEventListener("abort", () => {
      if (this.#close(own)) own?.error(new DOMException("aborted", "AbortError"));
    });
    return new Response(body);
  };

  get connections(): number {
    return this.#open.size;
  }

  publish(event: UserEvent): void {
    const text = `id: 1-${this.#events.length + 1}\ndata: ${JSON.stringify(event)}\n\n`;
    this.#events.push(text);
    this.comment(text);
  }

  /** Send text to every connection; by default a heartbeat. */
  comment(text = ": keep-alive\n\n"): void {
    for (const controller of this.#open) this.#send(text, controller);
  }

  /** Break every connection. */
  breakAll(): void {
    for (const controller of [...this.#open]) {
      this.#close(controller);
      controller.error(new TypeError("network error"));
    }
  }

  #send(text: string, controller: ReadableStreamDefaultController<Uint8Array>): void {
    controller.enqueue(this.#encoder.encode(text));
  }

  #close(controller: ReadableStreamDefaultController<Uint8Array> | undefined): boolean {
    return controller !== undefined && this.#open.delete(controller);
  }
}

/** Web Locks in memory: the first that requests a name holds it until its callback has ended. */
export class MemoryLocks {
  #tails = new Map<string, Promise<unknown>>();

  async request(
    name: string,
    { signal }: { readonly signal: AbortSignal },
    callback: () => Promise<void>,
  ): Promise<void> {
    const turn = (this.#tails.get(name) ?? Promise.resolve()).then(async () => {
      signal.throwIfAborted();
      await callback();
    });
    this.#tails.set(
      name,
      turn.catch(() => undefined),
    );
    return turn;
  }
}
