import { connect, createServer, type Server, type Socket } from "node:net";

/** How a connection ends: by the server's word, by the network's, or by nothing at all. */
export type Cut = "close" | "reset" | "silence";

/** A close frame with the code 1012: the server restarts. */
const CLOSE = Buffer.from([0x88, 0x02, 0x03, 0xf4]);
const HEAD_END = "\r\n\r\n";
const SWITCHING = " 101 ";
const CHUNK = Buffer.from('{"type":"chunk"');

/** Takes what a server says apart: on a socket into whole frames, else as it comes. */
export class FrameReader {
  #rest = Buffer.alloc(0);
  /** What follows the head of the handshake, or that of any other response. */
  #follows: "head" | "frames" | "anything" = "head";

  /** Take more bytes; returns what is whole by now. */
  feed(bytes: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const whole: Buffer[] = [];
    for (let end = this.#end(); end !== undefined; end = this.#end()) {
      whole.push(this.#rest.subarray(0, end));
      this.#rest = this.#rest.subarray(end);
    }
    return whole;
  }

  /** Where the first whole piece ends. */
  #end(): number | undefined {
    const rest = this.#rest;
    if (this.#follows === "head") {
      const at = rest.indexOf(HEAD_END);
      if (at === -1) return undefined;
      this.#follows = rest.subarray(0, at).includes(SWITCHING) ? "frames" : "anything";
      return at + HEAD_END.length;
    }
    if (this.#follows === "anything") return rest.length || undefined;
    const head = headOf(rest);
    const end = head && head.start + head.length;
    return end === undefined || rest.length < end ? undefined : end;
  }
}

/** Where the payload of a server's frame, which is not masked, begins and how long it is. */
function headOf(frame: Buffer): { start: number; length: number } | undefined {
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
  const { start } = headOf(frame) ?? { start: 0 };
  return frame.subarray(start, start + CHUNK.length).equals(CHUNK);
}

/** A way to a server that ends where it is told to. */
export class CuttingProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #cut: Cut;
  /** The next connection is cut after so many chunks; never, once it is past the last. */
  #after = 1;
  readonly #last: number;
  readonly #happened: (cuts: number) => void;

  /** Cut one connection after the other, each one chunk later than the one before, so often. */
  constructor(target: string, cut: Cut, last: number, happened: (cuts: number) => void) {
    this.#target = new URL(target);
    this.#cut = cut;
    this.#last = last;
    this.#happened = happened;
    this.#server = createServer((client) => this.#serve(client));
  }

  /** How many connections have been cut. */
  get cuts(): number {
    return this.#after - 1;
  }

  /** Listen; returns the address. */
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
    // What is silent stays open on both sides.
    if (this.#cut !== "silence") server.destroy();
    this.#after += 1;
    this.#happened(this.cuts);
  }
}
