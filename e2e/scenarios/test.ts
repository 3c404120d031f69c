import { test as base } from "@playwright/test";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";

export { expect } from "@playwright/test";

interface Fixtures {
  readonly chat: ChatPage;
  /** A server of the test's own, which it may kill. */
  readonly own: DemoServer;
}

interface Shared {
  readonly server: DemoServer;
}

/** A test with a page, and with a server that its worker's tests share. */
export const test = base.extend<Fixtures, Shared>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: a fixture says so that it needs no other.
    async ({}, use) => {
      const server = await DemoServer.start();
      await use(server);
      await server.close();
    },
    { scope: "worker" },
  ],
  // biome-ignore lint/correctness/noEmptyPattern: a fixture says so that it needs no other.
  own: async ({}, use) => {
    const server = await DemoServer.start();
    await use(server);
    await server.close();
  },
  chat: async ({ page, server }, use) => {
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      const isAnswer = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isAnswer) problems.push(message.text());
    });
    page.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      const isLocal = ["data:", "blob:"].includes(protocol) || hostname === "127.0.0.1";
      if (!isLocal) problems.push(`asked ${hostname}`);
    });
    await use(new ChatPage(page, server));
    base.expect(problems, "the page broke or asked another host").toEqual([]);
  },
});
