import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy in front of a server, whose network can be cut, frozen and restored. */
export class NetworkProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #state: "connected" | "cut" | "frozen" = "connected";

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
    let isFrozen = false;
    const forward = (from: Socket, to: Socket) => {
      from.on("data", (data) => {
        isFrozen ||= this.#state === "frozen";
        if (!isFrozen) to.write(data);
      });
      from.on("close", () => {
        if (!isFrozen) to.destroy();
      });
    };
    forward(client, server);
    forward(server, client);
  }
}
