import { connect, createServer, type Server, type Socket } from "node:net";

/** How a connection is cut: with a close frame, with a reset, or by dropping all data. */
export type Cut = "close" | "reset" | "silence";

/** A close frame with the code 1012, service restart. */
const CLOSE = Buffer.from([0x88, 0x02, 0x03, 0xf4]);
const HEAD_END = "\r\n\r\n";
const SWITCHING = " 101 ";
const CHUNK = Buffer.from('{"type":"chunk"');

/** Splits the data of a server into frames on a WebSocket, and passes on any other response. */
export class FrameReader {
  #rest = Buffer.alloc(0);
  /** What the next bytes are: response headers, WebSocket frames, or the body of a response. */
  #state: "headers" | "frames" | "body" = "headers";

  /** Add bytes; returns the complete pieces. */
  feed(bytes: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const pieces: Buffer[] = [];
    for (let end = this.#end(); end !== undefined; end = this.#end()) {
      pieces.push(this.#rest.subarray(0, end));
      this.#rest = this.#rest.subarray(end);
    }
    return pieces;
  }

  /** The end of the first complete piece. */
  #end(): number | undefined {
    const rest = this.#rest;
    if (this.#state === "headers") {
      const at = rest.indexOf(HEAD_END);
      if (at === -1) return undefined;
      this.#state = rest.subarray(0, at).includes(SWITCHING) ? "frames" : "body";
      return at + HEAD_END.length;
    }
    if (this.#state === "body") return rest.length || undefined;
    const payload = payloadOf(rest);
    const end = payload && payload.start + payload.length;
    return end === undefined || rest.length < end ? undefined : end;
  }
}

/** The start and the length of the payload of a server frame, which is not masked. */
function payloadOf(frame: Buffer): { start: number; length: number } | undefined {
  if (frame.length < 2) return undefined;
  const short = (frame[1] ?? 0) & 0x7f;
  if (short < 126) return { start: 2, length: short };
  if (frame.length < (short === 126 ? 4 : 10)) return undefined;
  return short === 126
    ? { start: 4, length: frame.readUInt16BE(2) }
    : { start: 10, length: Number(frame.readBigUInt64BE(2)) };
}

/** Whether a frame carries a chunk of an answer. */
export function isChunk(frame: Buffer): boolean {
  const { start } = payloadOf(frame) ?? { start: 0 };
  return frame.subarray(start, start + CHUNK.length).equals(CHUNK);
}

/** A TCP proxy that cuts WebSocket connections after a number of chunks. */
export class CuttingProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #cut: Cut;
  /** The number of chunks after which the next connection is cut, up to `#last`. */
  #after = 1;
  readonly #last: number;
  readonly #onCut: (cuts: number) => void;
  #isWhole = false;

  /** Cut `last` connections, the first after one chunk, each other one chunk later. */
  constructor(target: string, cut: Cut, last: number, onCut: (cuts: number) => void) {
    this.#target = new URL(target);
    this.#cut = cut;
    this.#last = last;
    this.#onCut = onCut;
    this.#server = createServer((client) => this.#serve(client));
  }

  /** The number of connections that were cut. */
  get cuts(): number {
    return this.#after - 1;
  }

  /** Whether a connection that is not cut any more has carried a chunk; `onCut` is called then, too. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Listen on a free port; returns the URL. */
  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return `http://127.0.0.1:${address.port}`;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(client: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname);
    const frames = new FrameReader();
    let chunks = 0;
    let isCut = false;
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.setNoDelay();
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        if (!isCut) other.end();
      });
    }
    client.on("data", (bytes) => {
      if (!isCut) server.write(bytes);
    });
    server.on("data", (bytes) => {
      for (const frame of frames.feed(bytes)) {
        if (isCut) return;
        client.write(frame);
        if (isChunk(frame)) chunks += 1;
        if (chunks && this.#after > this.#last && !this.#isWhole) {
          this.#isWhole = true;
          this.#onCut(this.cuts);
        }
        if (chunks === this.#after && this.#after <= this.#last) {
          isCut = true;
          this.#end(client, server);
        }
      }
    });
  }

  #end(client: Socket, server: Socket): void {
    if (this.#cut === "close") client.end(CLOSE);
    if (this.#cut === "reset") client.resetAndDestroy();
    // A silent connection stays open on both sides.
    if (this.#cut !== "silence") server.destroy();
    this.#after += 1;
    this.#onCut(this.cuts);
  }
}
