import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A connection of a client to the server. */
interface Connection {
  readonly server: Socket;
  isFrozen: boolean;
}

/** A TCP proxy in front of a server, whose network can be cut, frozen, held and restored. */
export class NetworkProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #held = new Set<Connection>();
  #state: "connected" | "cut" | "frozen" = "connected";
  #lastText: string | undefined;

  private constructor(port: number) {
    this.#server = createServer((client) => this.#accept(client, port));
  }

  /** Start a proxy of the server at a port of this machine. */
  static async start(port: number): Promise<NetworkProxy> {
    const proxy = new NetworkProxy(port);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Reset every connection and each new one. */
  cut(): void {
    this.#state = "cut";
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Drop all data of the open connections silently; new ones are not answered. */
  freeze(): void {
    this.#state = "frozen";
    for (const connection of this.#held) connection.isFrozen = true;
  }

  /**
   * Once the server has sent this text, which is ASCII, forward no more of its data on that
   * connection before `release`.
   */
  holdAfter(text: string): void {
    this.#lastText = text;
  }

  /** Forward what is held. */
  release(): void {
    this.#lastText = undefined;
    for (const { server } of this.#held) server.resume();
    this.#held.clear();
  }

  /** Accept new connections; those that were frozen stay frozen. */
  restore(): void {
    this.#state = "connected";
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(client: Socket, port: number): void {
    const server = connect(port, "127.0.0.1");
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    }
    if (this.#state === "cut") return void client.resetAndDestroy();
    const connection: Connection = { server, isFrozen: false };
    const forward = (from: Socket, to: Socket) => {
      from.on("data", (data) => {
        connection.isFrozen ||= this.#state === "frozen";
        if (!connection.isFrozen) to.write(data);
      });
      from.on("close", () => {
        if (!connection.isFrozen) to.destroy();
      });
    };
    forward(client, server);
    forward(server, client);
    server.on("data", (data) => this.#holdIfLast(connection, data));
  }

  #holdIfLast(connection: Connection, data: Buffer): void {
    if (this.#lastText === undefined || !data.includes(this.#lastText)) return;
    this.#lastText = undefined;
    this.#held.add(connection);
    connection.server.pause();
  }
}
