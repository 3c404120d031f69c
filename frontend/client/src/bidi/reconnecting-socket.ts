import { IDLE_TIMEOUT } from "../idle-timeout.ts";
import type { RequestRefused } from "../refusals.ts";
import type { SocketClass } from "../socket-class.ts";
import { refusalFromCode } from "../socket-refusals.ts";

/** The timeouts and the retry delays of a connection, in milliseconds. */
export interface ReconnectOptions {
  /** The connection attempt is abandoned after this time. Default: 20,000. */
  readonly connectTimeout: number;
  /** The connection is replaced after this time without a frame. Default: 20,000. */
  readonly idleTimeout: number;
  /** The delay before the second attempt; it doubles with each further one. Default: 250. */
  readonly initialDelay: number;
  /** The longest delay between two attempts. Default: 10,000. */
  readonly maxDelay: number;
  /** No further attempt is made after this time without a frame. Default: 120,000. */
  readonly giveUpAfter: number;
}

export const RECONNECT_DEFAULTS: ReconnectOptions = {
  connectTimeout: 20_000,
  idleTimeout: IDLE_TIMEOUT,
  initialDelay: 250,
  maxDelay: 10_000,
  giveUpAfter: 120_000,
};

/** How a socket is opened. */
export interface SocketAddress {
  readonly url: () => URL | Promise<URL>;
  readonly protocols: string | string[] | undefined;
  readonly webSocket: SocketClass | undefined;
}

/** The callbacks of a `ReconnectingSocket`. */
export interface SocketCallbacks {
  onOpen(): void;
  onText(data: string): void;
  onBinary(data: ArrayBuffer): void;
  /** The connection was lost; it is reopened if `isNeeded`. */
  onLost(): void;
  /** The connection was refused or given up; only `open` tries again. */
  onFailed(error: Error): void;
  /** Whether a lost connection is to be reopened. */
  isNeeded(): boolean;
}

interface OpenSocket {
  binaryType: string;
  readonly readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: (() => void) | null;
  onclose: ((event: { code?: number; reason?: string }) => void) | null;
  send(data: string | ArrayBuffer): void;
  close(code?: number, reason?: string): void;
}

const OPEN = 1;

/** A connection is stable once it has been open for this time, in milliseconds. */
const STABLE_AFTER = 1_000;

/** Close codes after which reconnecting would fail for the same reason. */
const FINAL_CODES: Readonly<Record<number, readonly [message: string, code: string]>> = {
  1003: ["The server takes no audio on this connection.", "malformed"],
  1007: ["The server could not read a frame.", "malformed"],
  1008: ["The server refused the connection.", "malformed"],
  1009: ["The message is too large for the server.", "too_large"],
  4401: ["You are signed out; sign in again.", "unauthenticated"],
  4409: ["This chat is open elsewhere; close it there first.", "held_elsewhere"],
};

/** An error that `Chat` reports as a lost connection (`isDisconnect`). */
export function networkError(predicate: string): TypeError {
  return new TypeError(`The network connection ${predicate}.`);
}

/** The reason of 4409 if a newer connection of the same user has the chat. */
const TAKEN_OVER = "taken_over";

function finalError(
  closeCode: number | undefined,
  reason: string | undefined,
): RequestRefused | undefined {
  if (closeCode === 4409 && reason === TAKEN_OVER) {
    const message = "This chat was opened in another place; connect here again to take it back.";
    return refusalFromCode(message, TAKEN_OVER);
  }
  const refusal = closeCode === undefined ? undefined : FINAL_CODES[closeCode];
  return refusal && refusalFromCode(...refusal);
}

/** A WebSocket that is reopened with exponential backoff while needed, up to `giveUpAfter`. */
export class ReconnectingSocket {
  readonly #address: SocketAddress;
  readonly #callbacks: SocketCallbacks;
  readonly #options: ReconnectOptions;
  #socket: OpenSocket | undefined;
  /** The attempt that is resolving its URL. */
  #attempt: symbol | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #hasBeenOpen = false;
  /** When the current connection was opened. */
  #openedAt: number | undefined;
  #attempts = 0;
  /** Since when no frame has been received; undefined while frames are coming in. */
  #silentSince: number | undefined;

  constructor(
    address: SocketAddress,
    callbacks: SocketCallbacks,
    options: Partial<ReconnectOptions> = {},
  ) {
    this.#address = address;
    this.#callbacks = callbacks;
    this.#options = { ...RECONNECT_DEFAULTS, ...options };
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === OPEN;
  }

  /** Connect now, unless the socket is open or connecting. */
  open(): void {
    if (this.#socket !== undefined || this.#attempt !== undefined) return;
    this.#cancelRetry();
    void this.#connect();
  }

  /** Send a message; returns false without a connection. */
  send(data: string | ArrayBuffer): boolean {
    if (!this.isOpen) return false;
    this.#socket?.send(data);
    return true;
  }

  /** Close the current connection and reconnect as if it had been lost. */
  reconnect(reason: string): void {
    this.#detach(4000, reason);
    this.#afterLoss();
  }

  close(): void {
    this.#cancelRetry();
    this.#detach(1000, "Client closed transport");
    this.#attempts = 0;
    this.#silentSince = undefined;
  }

  async #connect(): Promise<void> {
    this.#attempts += 1;
    this.#silentSince ??= Date.now();
    const attempt = Symbol("attempt");
    this.#attempt = attempt;
    try {
      const url = await this.#address.url();
      if (this.#attempt !== attempt) return;
      const Socket = this.#address.webSocket ?? (globalThis.WebSocket as SocketClass);
      const { protocols } = this.#address;
      const socket = (protocols ? new Socket(url, protocols) : new Socket(url)) as OpenSocket;
      this.#attempt = undefined;
      this.#socket = socket;
      this.#listen(socket);
      this.#restartIdleTimer(this.#options.connectTimeout);
    } catch (error) {
      if (this.#attempt !== attempt) return;
      this.#attempt = undefined;
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #listen(socket: OpenSocket): void {
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.#hasBeenOpen = true;
      this.#openedAt = Date.now();
      this.#restartIdleTimer();
      this.#callbacks.onOpen();
    };
    socket.onmessage = ({ data }) => {
      this.#silentSince = undefined;
      this.#restartIdleTimer();
      if (typeof data === "string") this.#callbacks.onText(data);
      else this.#callbacks.onBinary(data as ArrayBuffer);
    };
    socket.onerror = () => {};
    socket.onclose = ({ code, reason }) => {
      this.#detach();
      const error = finalError(code, reason);
      if (error === undefined) this.#afterLoss();
      else this.#fail(error);
    };
  }

  #restartIdleTimer(milliseconds = this.#options.idleTimeout): void {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => this.reconnect("silence"), milliseconds);
  }

  /** Remove the listeners of the socket and close it if a close code is given. */
  #detach(code?: number, reason?: string): void {
    clearTimeout(this.#idleTimer);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#attempt = undefined;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // A dead connection may still emit an error, which would be unhandled without a listener.
    socket.onerror = () => {};
    if (code !== undefined) socket.close(code, reason);
  }

  #afterLoss(): void {
    this.#callbacks.onLost();
    if (!this.#callbacks.isNeeded()) return;
    const { giveUpAfter, initialDelay, maxDelay } = this.#options;
    this.#silentSince ??= Date.now();
    const now = Date.now();
    if (!this.#hasBeenOpen || now - this.#silentSince >= giveUpAfter) {
      this.#fail(networkError("could not be made"));
      return;
    }
    // A stable connection is reopened immediately, an unstable one with growing delays.
    if (this.#openedAt !== undefined && now - this.#openedAt >= STABLE_AFTER) this.#attempts = 0;
    this.#openedAt = undefined;
    if (this.#attempts === 0) {
      this.open();
      return;
    }
    const delay = Math.min(maxDelay, initialDelay * 2 ** (this.#attempts - 1));
    // Jitter, so that the clients of a restarting server do not reconnect at the same time.
    this.#retryTimer = setTimeout(() => this.open(), delay * (0.5 + Math.random() / 2));
    globalThis.addEventListener?.("online", this.#onOnline);
  }

  readonly #onOnline = (): void => this.open();

  #cancelRetry(): void {
    clearTimeout(this.#retryTimer);
    globalThis.removeEventListener?.("online", this.#onOnline);
  }

  #fail(error: Error): void {
    this.#cancelRetry();
    this.#attempts = 0;
    this.#silentSince = undefined;
    this.#callbacks.onFailed(error);
  }
}
