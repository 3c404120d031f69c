import type { SocketClass } from "../src/socket-failures.ts";
import type { Chunk } from "./chunks.ts";

/** A frame of the client or of the server. */
export interface Frame {
  readonly type: string;
  readonly requestId: string;
  readonly [key: string]: unknown;
}

/** A WebSocket whose server side is controlled by a test. */
export class FakeSocket extends EventTarget {
  readonly url: string;
  readonly protocols: unknown;
  readonly sent: Frame[] = [];
  readonly audio: ArrayBuffer[] = [];
  readonly bufferedAmount = 0;
  binaryType = "blob";
  readyState = 0;
  /** The close code of the client. */
  closeCode: number | undefined;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: (() => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  readonly #onFrame: (socket: FakeSocket, frame: Frame) => void;

  constructor(
    url: string,
    protocols: unknown,
    onFrame: (socket: FakeSocket, frame: Frame) => void,
  ) {
    super();
    this.url = url;
    this.protocols = protocols;
    this.#onFrame = onFrame;
  }

  accept(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  emitFrame(frame: Frame): void {
    this.emitText(JSON.stringify(frame));
  }

  emitText(data: string): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
    this.onmessage?.({ data });
  }

  /** Emit the chunks of a request, numbered from `from`. */
  emitChunks(requestId: string, chunks: readonly Chunk[], from = 0): void {
    for (const [index, chunk] of chunks.entries()) {
      this.emitFrame({ type: "chunk", requestId, sequence: from + index, chunk });
    }
  }

  emitBinary(data: ArrayBuffer): void {
    this.onmessage?.({ data });
  }

  /** Close the connection from the server, or lose it. */
  emitClose(code = 1006, reason = ""): void {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  send(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      this.audio.push(data);
      return;
    }
    const frame = JSON.parse(data) as Frame;
    this.sent.push(frame);
    this.#onFrame(this, frame);
  }

  close(code: number): void {
    this.readyState = 3;
    this.closeCode = code;
  }
}

/** The sockets that a client has opened, in order. */
export class FakeSockets {
  readonly all: FakeSocket[] = [];
  /** Called when the client opens a socket; accepts it by default. */
  onConnect: (socket: FakeSocket, count: number) => void = (socket) => socket.accept();
  /** Called with each frame of the client. */
  onFrame: (socket: FakeSocket, frame: Frame) => void = () => {};
  readonly webSocket: SocketClass;

  constructor() {
    const open = (url: string | URL, protocols?: string | string[]): FakeSocket => {
      const socket = new FakeSocket(String(url), protocols, (...args) => this.onFrame(...args));
      this.all.push(socket);
      const count = this.all.length;
      queueMicrotask(() => this.onConnect(socket, count));
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

  /** The frames of the client on all sockets. */
  get frames(): Frame[] {
    return this.all.flatMap(({ sent }) => sent);
  }
}
