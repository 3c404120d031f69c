import type { Chunk } from "./chunks.ts";

/** A `fetch` that keeps the chunks of each response, for the checks of an exchange. */
export class RecordingFetch {
  readonly #responses: Promise<Chunk[]>[] = [];
  readonly #fetch: typeof fetch;

  /** `fetchResponse` is the `fetch` that is recorded; default: the global one. */
  constructor(fetchResponse: typeof fetch = globalThis.fetch) {
    this.#fetch = fetchResponse;
  }

  /** The `fetch` of a transport. */
  readonly fetch: typeof fetch = async (input, init) => {
    const response = await this.#fetch(input, init);
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    if (isStream) this.#responses.push(response.clone().text().then(parseChunks));
    return response;
  };

  /** The chunks of each response, in order of the requests, once the responses have ended. */
  turns(): Promise<Chunk[][]> {
    return Promise.all(this.#responses);
  }
}

function parseChunks(body: string): Chunk[] {
  return body
    .split("\n\n")
    .filter((event) => event.startsWith("data: ") && event !== "data: [DONE]")
    .map((event) => JSON.parse(event.slice("data: ".length)) as Chunk);
}
