import { test as base } from "@playwright/test";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { NetworkProxy } from "./network-proxy.ts";
import { isPlayed } from "./parts.ts";

export { expect } from "@playwright/test";

interface Fixtures {
  readonly chat: ChatPage;
  /** A server for one test, which may kill it. */
  readonly ownServer: DemoServer;
  /** A network in front of the server. */
  readonly network: NetworkProxy;
  /** The page behind the network. */
  readonly distantChat: ChatPage;
  readonly _part: undefined;
}

interface WorkerFixtures {
  readonly server: DemoServer;
}

/** A test with a page, and a server that the tests of a worker share. */
export const test = base.extend<Fixtures, WorkerFixtures>({
  _part: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright requires the pattern to find the dependencies of a fixture.
    async ({}, use, info) => {
      info.skip(!isPlayed(info.titlePath.join(" › ")), "played in the run of another day");
      await use(undefined);
    },
    { auto: true },
  ],
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright requires the pattern to find the dependencies of a fixture.
    async ({}, use) => {
      const server = await DemoServer.start();
      await use(server);
      await server.close();
    },
    // Python imports everything before the first server of a worker starts.
    { scope: "worker", timeout: 300_000 },
  ],
  network: async ({ server }, use) => {
    const network = await NetworkProxy.start(server.port);
    await use(network);
    await network.close();
  },
  // biome-ignore lint/correctness/noEmptyPattern: Playwright requires the pattern to find the dependencies of a fixture.
  ownServer: async ({}, use) => {
    const server = await DemoServer.start();
    await use(server);
    await server.close();
  },
  chat: async ({ page, server }, use) => {
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      const isFailedRequest = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isFailedRequest) problems.push(message.text());
    });
    page.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      const isLocal = ["data:", "blob:"].includes(protocol) || hostname === "127.0.0.1";
      if (!isLocal) problems.push(`request to ${hostname}`);
    });
    await use(new ChatPage(page, server));
    base.expect(problems, "errors of the page and requests to other hosts").toEqual([]);
  },
  // In this order the errors of the page are checked before its connections are reset.
  distantChat: async ({ network, chat }, use) => {
    await use(new ChatPage(chat.page, chat.server, network.url));
  },
});
