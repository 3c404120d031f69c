import type { SocketClass } from "../refusals.ts";
import { type RequestRefused, refusalOfCode } from "../refusals.ts";

/** How a socket is kept alive; times in milliseconds. */
export interface Patience {
  /** An attempt to connect that has come to nothing after so long is given up. */
  readonly connect: number;
  /** Without any frame for so long a socket is taken for dead: two heartbeats of the server. */
  readonly silence: number;
  /** What the second attempt to connect waits for; each further one twice as long. */
  readonly firstWait: number;
  /** The most that an attempt waits for. */
  readonly longestWait: number;
  /** After so long without a frame nothing is tried any more. */
  readonly giveUp: number;
}

export const PATIENCE: Patience = {
  connect: 20_000,
  silence: 30_000,
  firstWait: 250,
  longestWait: 10_000,
  giveUp: 120_000,
};

/** What opens a socket. */
export interface Address {
  readonly url: () => URL | Promise<URL>;
  readonly protocols: string | string[] | undefined;
  readonly webSocket: SocketClass | undefined;
}

/** What the owner of a socket hears of it. */
export interface SocketEvents {
  opened(): void;
  text(data: string): void;
  bytes(data: ArrayBuffer): void;
  /** The connection is lost; it is sought again if `isNeeded`. */
  lost(): void;
  /** Nothing is tried any more, until `open` is called again. */
  failed(error: Error): void;
  /** Whether something waits for the connection. */
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

/** A connection that has held for so long is a good one, in milliseconds. */
const STEADY = 1_000;

/** Closings after which the same would happen again, by code. */
const FINAL: Readonly<Record<number, readonly [sentence: string, code: string]>> = {
  1003: ["The server takes no audio on this connection.", "malformed"],
  1007: ["The server could not read a frame.", "malformed"],
  1008: ["The server refused the connection.", "malformed"],
  1009: ["The message is too large for the server.", "too_large"],
  4401: ["You are signed out; sign in again.", "unauthenticated"],
  4409: ["This chat is open elsewhere; close it there first.", "held_elsewhere"],
};

/** An error that `Chat` takes for a lost connection. */
export function networkError(what: string): TypeError {
  return new TypeError(`The network connection ${what}.`);
}

function finalError(code: number | undefined): RequestRefused | undefined {
  const known = code === undefined ? undefined : FINAL[code];
  return known && refusalOfCode(...known);
}

/** One connection that is sought again, with growing waits, for as long as somebody needs it. */
export class LastingSocket {
  readonly #address: Address;
  readonly #events: SocketEvents;
  readonly #patience: Patience;
  #socket: OpenSocket | undefined;
  /** The attempt that asks for its address. */
  #opening: symbol | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #hasBeenOpen = false;
  /** When the present connection was made. */
  #openedAt: number | undefined;
  #attempts = 0;
  /** When the last frame came, or the first attempt after it began. */
  #heardAt: number | undefined;

  constructor(address: Address, events: SocketEvents, patience: Partial<Patience> = {}) {
    this.#address = address;
    this.#events = events;
    this.#patience = { ...PATIENCE, ...patience };
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === OPEN;
  }

  /** Connect now, unless a connection is there or on its way. */
  open(): void {
    if (this.#socket !== undefined || this.#opening !== undefined) return;
    this.#stopWaiting();
    void this.#connect();
  }

  /** Send; false if there is no connection. */
  send(data: string | ArrayBuffer): boolean {
    if (!this.isOpen) return false;
    this.#socket?.send(data);
    return true;
  }

  /** Give up this connection and seek another, as if it had been lost. */
  cut(reason: string): void {
    this.#drop(4000, reason);
    this.#afterLoss();
  }

  close(): void {
    this.#stopWaiting();
    this.#drop(1000, "Client closed transport");
    this.#attempts = 0;
    this.#heardAt = undefined;
  }

  async #connect(): Promise<void> {
    this.#attempts += 1;
    this.#heardAt ??= Date.now();
    const opening = Symbol("opening");
    this.#opening = opening;
    try {
      const url = await this.#address.url();
      if (this.#opening !== opening) return;
      const Socket = this.#address.webSocket ?? (globalThis.WebSocket as SocketClass);
      const { protocols } = this.#address;
      const socket = (protocols ? new Socket(url, protocols) : new Socket(url)) as OpenSocket;
      this.#opening = undefined;
      this.#socket = socket;
      this.#listen(socket);
      this.#watch(this.#patience.connect);
    } catch (error) {
      if (this.#opening !== opening) return;
      this.#opening = undefined;
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #listen(socket: OpenSocket): void {
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.#hasBeenOpen = true;
      this.#openedAt = Date.now();
      this.#watch();
      this.#events.opened();
    };
    socket.onmessage = ({ data }) => {
      this.#heardAt = undefined;
      this.#watch();
      if (typeof data === "string") this.#events.text(data);
      else this.#events.bytes(data as ArrayBuffer);
    };
    socket.onerror = () => {};
    socket.onclose = ({ code }) => {
      this.#drop();
      const error = finalError(code);
      if (error === undefined) this.#afterLoss();
      else this.#fail(error);
    };
  }

  #watch(milliseconds = this.#patience.silence): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.cut("silence"), milliseconds);
  }

  /** Let go of the socket; its last events are not heard. */
  #drop(code?: number, reason?: string): void {
    clearTimeout(this.#silence);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#opening = undefined;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    // A connection that is dead already may still tell of it.
    socket.onerror = () => {};
    if (code !== undefined) socket.close(code, reason);
  }

  #afterLoss(): void {
    this.#events.lost();
    if (!this.#events.isNeeded()) return;
    const { giveUp, firstWait, longestWait } = this.#patience;
    this.#heardAt ??= Date.now();
    const now = Date.now();
    if (!this.#hasBeenOpen || now - this.#heardAt >= giveUp) {
      this.#fail(networkError("could not be made"));
      return;
    }
    // One that held is sought again at once, one that never does less and less often.
    if (this.#openedAt !== undefined && now - this.#openedAt >= STEADY) this.#attempts = 0;
    this.#openedAt = undefined;
    if (this.#attempts === 0) {
      this.open();
      return;
    }
    const wait = Math.min(longestWait, firstWait * 2 ** (this.#attempts - 1));
    // Spread, so that the clients of a server that restarts do not all come at once.
    this.#timer = setTimeout(() => this.open(), wait * (0.5 + Math.random() / 2));
    globalThis.addEventListener?.("online", this.#online);
  }

  readonly #online = (): void => this.open();

  #stopWaiting(): void {
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("online", this.#online);
  }

  #fail(error: Error): void {
    this.#stopWaiting();
    this.#attempts = 0;
    this.#heardAt = undefined;
    this.#events.failed(error);
  }
}
