import type { SocketClass } from "../src/refusals.ts";
import type { Chunk } from "./chunks.ts";

/** A frame of either side. */
export interface Frame {
  readonly type: string;
  readonly requestId: string;
  readonly [key: string]: unknown;
}

/** One socket, seen from the server's end; it opens when the test says so. */
export class FakeSocket extends EventTarget {
  readonly url: string;
  readonly protocols: unknown;
  readonly sent: Frame[] = [];
  readonly audio: ArrayBuffer[] = [];
  readonly bufferedAmount = 0;
  binaryType = "blob";
  readyState = 0;
  /** The code with which the client has closed it. */
  closedWith: number | undefined;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: (() => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  readonly #heard: (socket: FakeSocket, frame: Frame) => void;

  constructor(url: string, protocols: unknown, heard: (socket: FakeSocket, frame: Frame) => void) {
    super();
    this.url = url;
    this.protocols = protocols;
    this.#heard = heard;
  }

  accept(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  say(frame: Frame): void {
    this.text(JSON.stringify(frame));
  }

  text(data: string): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
    this.onmessage?.({ data });
  }

  /** Say the chunks of a request from its beginning. */
  chunks(requestId: string, chunks: readonly Chunk[], from = 0): void {
    for (const [index, chunk] of chunks.entries()) {
      this.say({ type: "chunk", requestId, sequence: from + index, chunk });
    }
  }

  bytes(data: ArrayBuffer): void {
    this.onmessage?.({ data });
  }

  /** The connection ends, by the server or on the way. */
  end(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code, reason: "" });
  }

  send(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      this.audio.push(data);
      return;
    }
    const frame = JSON.parse(data) as Frame;
    this.sent.push(frame);
    this.#heard(this, frame);
  }

  close(code: number): void {
    this.readyState = 3;
    this.closedWith = code;
  }
}

/** Sockets in the order in which a client opens them. */
export class FakeSockets {
  readonly all: FakeSocket[] = [];
  /** What the server does when a socket is opened; it accepts unless told otherwise. */
  opened: (socket: FakeSocket, count: number) => void = (socket) => socket.accept();
  /** What the server does when a frame comes. */
  heard: (socket: FakeSocket, frame: Frame) => void = () => {};
  readonly webSocket: SocketClass;

  constructor() {
    const open = (url: string | URL, protocols?: string | string[]): FakeSocket => {
      const socket = new FakeSocket(String(url), protocols, (...told) => this.heard(...told));
      this.all.push(socket);
      const count = this.all.length;
      queueMicrotask(() => this.opened(socket, count));
      return socket;
    };
    this.webSocket = new Proxy(Object as unknown as SocketClass, {
      construct: (_, [url, protocols]) => open(url, protocols),
    });
  }

  get last(): FakeSocket {
    const last = this.all.at(-1);
    if (last === undefined) throw new Error("no socket was opened");
    return last;
  }

  /** All frames of the client, over all sockets. */
  get frames(): Frame[] {
    return this.all.flatMap(({ sent }) => sent);
  }
}
