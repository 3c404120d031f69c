import type { SocketClass } from "../socket-class.ts";
import type { Chunk } from "./chunks.ts";

/** A frame of the client or of the server. */
export interface Frame {
  /** The type of the frame, such as `send` or `chunk`. */
  readonly type: string;
  /** The request that the frame belongs to. */
  readonly requestId: string;
  readonly [key: string]: unknown;
}

/** A WebSocket whose server side is controlled by a test. */
export class ScriptedSocket extends EventTarget {
  /** The URL that the client opened. */
  readonly url: string;
  /** The subprotocols that the client offers. */
  readonly protocols: unknown;
  /** The frames of the client, in order. */
  readonly sent: Frame[] = [];
  /** The binary messages of the client, in order. */
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
  readonly #onFrame: (socket: ScriptedSocket, frame: Frame) => void;

  constructor(
    url: string,
    protocols: unknown,
    onFrame: (socket: ScriptedSocket, frame: Frame) => void,
  ) {
    super();
    this.url = url;
    this.protocols = protocols;
    this.#onFrame = onFrame;
  }

  /** Accept the connection. */
  accept(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  /** Emit a frame of the server. */
  emitFrame(frame: Frame): void {
    this.emitText(JSON.stringify(frame));
  }

  /** Emit a text message of the server. */
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

  /** Emit a binary message of the server. */
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
export class ScriptedSockets {
  /** All sockets, in order. */
  readonly all: ScriptedSocket[] = [];
  /** Called when the client opens a socket; accepts it by default. */
  onConnect: (socket: ScriptedSocket, count: number) => void = (socket) => socket.accept();
  /** Called with each frame of the client. */
  onFrame: (socket: ScriptedSocket, frame: Frame) => void = () => {};
  /** The `WebSocket` class of a transport. */
  readonly webSocket: SocketClass;

  constructor() {
    const open = (url: string | URL, protocols?: string | string[]): ScriptedSocket => {
      const socket = new ScriptedSocket(String(url), protocols, (...args) => this.onFrame(...args));
      this.all.push(socket);
      const count = this.all.length;
      queueMicrotask(() => this.onConnect(socket, count));
      return socket;
    };
    this.webSocket = new Proxy(Object as unknown as SocketClass, {
      construct: (_, [url, protocols]) => open(url, protocols),
    });
  }

  /** The socket that was opened last. */
  get last(): ScriptedSocket {
    const last = this.all.at(-1);
    if (last === undefined) throw new Error("no socket was opened");
    return last;
  }

  /** The frames of the client on all sockets. */
  get frames(): Frame[] {
    return this.all.flatMap(({ sent }) => sent);
  }
}
