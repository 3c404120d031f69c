import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, Page } from "@playwright/test";
import { expect, test } from "./fixtures.ts";

// The published files of the client package, on pages of the demo server's origin.

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = mkdtempSync(join(tmpdir(), "sluicegate-events-"));
const TABS = 10;

const PAGE = `<!doctype html><title>Events</title><ul></ul><script type="module">
import { subscribeToEvents } from "/package/events/index.js";
subscribeToEvents({
  api: "/api/events",
  onEvent: (event) => {
    const item = document.createElement("li");
    item.textContent = event.title ?? event.type;
    item.dataset.at = String(Date.now());
    document.querySelector("ul").append(item);
  },
});
</script>`;

test.beforeAll(() => {
  execFileSync(
    process.execPath,
    [
      join(ROOT, "node_modules/typescript/bin/tsc"),
      "-p",
      join(ROOT, "frontend/client/tsconfig.build.json"),
      "--outDir",
      FOLDER,
    ],
    { cwd: ROOT },
  );
});

test.afterAll(() => rmSync(FOLDER, { recursive: true }));

async function openTab(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${url}/tab`);
  await expect(page.getByText("ready")).toBeVisible();
  return page;
}

async function expectEvent(tabs: readonly Page[], text: string): Promise<number> {
  const items = tabs.map((tab) => tab.getByText(text));
  for (const item of items) await expect(item).toHaveCount(1);
  const times = await Promise.all(items.map((item) => item.getAttribute("data-at")));
  return Math.max(...times.map(Number));
}

test("ten tabs share one connection and see each event", async ({ context, server }) => {
  await context.route(`${server.url}/tab`, (route) =>
    route.fulfill({ contentType: "text/html", body: PAGE }),
  );
  await context.route(`${server.url}/package/**`, (route) => {
    const path = new URL(route.request().url()).pathname.replace("/package/", "");
    const body = readFileSync(join(FOLDER, path), "utf8");
    return route.fulfill({ contentType: "text/javascript", body });
  });
  const connections: string[] = [];
  context.on("request", (request) => {
    if (request.url().includes("/api/events")) connections.push(request.url());
  });
  const chat = `events-${Date.now()}`;
  const message = { id: "u1", role: "user", parts: [{ type: "text", text: "Hello" }] };
  await context.request.post(`${server.url}/api/chat`, { data: { id: chat, message } });

  const tabs: Page[] = [];
  for (let tab = 0; tab < TABS; tab += 1) tabs.push(await openTab(context, server.url));
  const rename = (title: string) =>
    context.request.patch(`${server.url}/api/chats/${chat}`, { data: { title } });

  const begun = Date.now();
  await rename("Seen by all");
  const delay = (await expectEvent(tabs, "Seen by all")) - begun;
  test
    .info()
    .annotations.push({ type: "milliseconds until the last tab", description: `${delay}` });
  expect(connections).toHaveLength(1);

  // The connected tab closes; the next one resumes, and no tab misses what happens meanwhile.
  await tabs.shift()?.close();
  await rename("Seen after a close");
  await expectEvent(tabs, "Seen after a close");
  expect(connections).toHaveLength(2);
  expect(connections[1]).toContain("after=");
});
