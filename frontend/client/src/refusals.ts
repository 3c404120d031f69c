/** What HTTP answers to the codes that a socket tells alone; all others are 409. */
const STATUSES: Readonly<Record<string, number>> = {
  malformed: 400,
  unauthenticated: 401,
  origin: 403,
  host: 403,
  unknown: 404,
  timeout: 408,
  too_large: 413,
  unsupported_media_type: 415,
  too_many_requests: 429,
  internal: 500,
  unavailable: 503,
};

/** The server has refused a request; the message is its own sentence. */
export class RequestRefused extends Error {
  override readonly name = "RequestRefused";
  /** The HTTP status. */
  readonly status: number;
  /** The server's name for the reason, from the header `x-error-code`. */
  readonly code: string | undefined;

  constructor(message: string, status: number, code: string | undefined) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** What the server has said with a response that is no success; `otherwise` if it said nothing. */
export async function refusalOf(response: Response, otherwise: string): Promise<RequestRefused> {
  const sentence = (await response.text()).trim() || otherwise;
  const code = response.headers.get("x-error-code") ?? undefined;
  return new RequestRefused(sentence, response.status, code);
}

/** The refusal that an `error` frame tells. */
export function refusalOfCode(sentence: string, code: string): RequestRefused {
  return new RequestRefused(sentence, STATUSES[code] ?? 409, code);
}

/** A `fetch` that throws a `RequestRefused` where the server refuses, in either major. */
export function refusingFetch(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (...request) => {
    const response = await fetch(...request);
    if (response.ok) return response;
    throw await refusalOf(response, "The server refused the request.");
  };
}

/** A class that opens sockets; the AI SDK, a browser and `ws` each have a type of their own. */
export type SocketClass = new (url: string | URL, protocols?: string | string[]) => object;

/**
 * Remembers why a server refuses requests of a socket: the stock transport throws the sentence of
 * an `error` frame and drops its code.
 */
export class SocketRefusals {
  readonly #codes = new Map<string, string>();

  /** A class that opens the same sockets and lets their `error` frames be seen here first. */
  seenBy(webSocket: SocketClass | undefined): SocketClass {
    const see = (data: unknown) => this.#see(data);
    return new Proxy(webSocket ?? (globalThis.WebSocket as SocketClass), {
      construct(Socket, [url, protocols]) {
        const socket = new Socket(url, protocols) as EventTarget;
        socket.addEventListener("message", (event) => see((event as MessageEvent).data));
        return socket;
      },
    });
  }

  /** The refusal behind an error of the stock transport, else the error as it is. */
  named(error: unknown): unknown {
    if (!(error instanceof Error)) return error;
    const code = this.#codes.get(error.message);
    if (code === undefined) return error;
    this.#codes.delete(error.message);
    return refusalOfCode(error.message, code);
  }

  #see(data: unknown): void {
    // The server writes the type first, and only few of very many frames are errors.
    if (typeof data !== "string" || !/^\s*\{\s*"type"\s*:\s*"error"/.test(data)) return;
    const { errorText, code } = JSON.parse(data) as { errorText?: unknown; code?: unknown };
    if (typeof errorText === "string" && typeof code === "string") {
      this.#codes.set(errorText, code);
    }
  }
}
