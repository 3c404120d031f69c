import { RequestRefused } from "./refusals.ts";
import type { SocketClass } from "./socket-class.ts";

/** The HTTP status of each error code that a socket sends without one; all others are 409. */
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

/** The refusal of an `error` frame. */
export function refusalFromCode(message: string, code: string): RequestRefused {
  return new RequestRefused(message, STATUSES[code] ?? 409, code);
}

/**
 * Keeps the error codes of `error` frames: the stock WebSocket transport throws the sentence of such
 * a frame and drops its code.
 */
export class SocketRefusals {
  readonly #codes = new Map<string, string>();

  /** The WebSocket class, with a listener for `error` frames on each of its sockets. */
  observe(webSocket: SocketClass): SocketClass {
    const record = (data: unknown) => this.#record(data);
    return new Proxy(webSocket, {
      construct(Socket, [url, protocols]) {
        const socket = new Socket(url, protocols) as EventTarget;
        socket.addEventListener("message", (event) => record((event as MessageEvent).data));
        return socket;
      },
    });
  }

  /** The refusal for an error of the stock transport; any other error is returned unchanged. */
  toRefusal(error: unknown): unknown {
    if (!(error instanceof Error)) return error;
    const code = this.#codes.get(error.message);
    if (code === undefined) return error;
    this.#codes.delete(error.message);
    return refusalFromCode(error.message, code);
  }

  #record(data: unknown): void {
    // The server writes `type` first; parsing every frame to find the few errors would be slow.
    if (typeof data !== "string" || !/^\s*\{\s*"type"\s*:\s*"error"/.test(data)) return;
    const { errorText, code } = JSON.parse(data) as { errorText?: unknown; code?: unknown };
    if (typeof errorText === "string" && typeof code === "string") {
      this.#codes.set(errorText, code);
    }
  }
}
