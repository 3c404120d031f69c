// Measures the page: a long answer at full speed, a history of 300 messages, both together, and the
// time until a card can be answered. But for the last, the page is built without minification, so
// that the share of React can be determined.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "@playwright/test";
import { build } from "vite";
import config from "../../../playwright.config.ts";
import { firstCard } from "./first-card.ts";
import { longChat } from "./long-chat.ts";
import { measureWork } from "./page-work.ts";
import { PAYER, type Server, serve, WRITER } from "./servers.ts";

const ROOT = join(import.meta.dirname, "../../..");
const DELTAS = 5300;
const DELTA = 8;
const MESSAGES = 300;
const TYPES: Record<string, string> = { css: "text/css", html: "text/html", js: "text/javascript" };

const paragraph = "The **gate** holds the water back, and a person lets it go. ".repeat(6);
const code = "```python\nlift(gate, by=0.3)  # a hand\n```";
const piece = `## On gates\n\n${paragraph}\n\n- one\n- two\n- three\n\n${code}\n\n`;
const end = "The gate is down again, and this is the end of it.";
const length = DELTAS * DELTA - end.length;
const answer = `${piece.repeat(Math.ceil(length / piece.length)).slice(0, length - 2)}\n\n${end}`;

/** Serve the page from a build in place of the server's own. */
async function servePage(context: BrowserContext, url: string, built: string): Promise<void> {
  const fileResponse = async (file: string) => ({
    body: await readFile(join(built, file)),
    contentType: TYPES[file.split(".").at(-1) ?? ""] ?? "text/plain",
  });
  await context.route(`${url}/assets/*`, async (route) => {
    await route.fulfill(await fileResponse(new URL(route.request().url()).pathname));
  });
  await context.route(`${url}/?chat=*`, async (route) => {
    const { body, contentType } = await fileResponse("index.html");
    const values: Record<string, string> = { api: "api", theme: "{}" };
    const index = body.toString().replaceAll(/\{\{([a-z]+)\}\}/g, (_, name) => values[name] ?? "");
    await route.fulfill({ body: index, contentType });
  });
}

async function longAnswer(context: BrowserContext, url: string): Promise<void> {
  const page = await context.newPage();
  await page.goto(`${url}/?chat=answer`);
  await page.getByRole("textbox", { name: "Message" }).fill("Write");
  const start = performance.now();
  const { longestTask, react, scripts } = await measureWork(page, async () => {
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Answer again" }).waitFor({ timeout: 120_000 });
    await page.getByText(end).waitFor();
  });
  const elapsed = performance.now() - start;
  const percent = (part: number) => `${Math.round((part / elapsed) * 100)} %`;
  process.stdout.write(
    `page: ${DELTAS} deltas in ${(elapsed / 1000).toFixed(1)} s; of that ${percent(scripts)} is ` +
      `work of the page, ${percent(react)} React (at most 25 %); the longest task takes ` +
      `${Math.round(longestTask)} ms (at most 100)\n`,
  );
  await page.close();
}

async function longHistory(context: BrowserContext, url: string): Promise<void> {
  const page = await context.newPage();
  const messages = Array.from({ length: MESSAGES }, (_, index) => ({
    id: `m${index}`,
    role: index % 2 === 0 ? "user" : "assistant",
    parts: [{ type: "text", text: `${index}\n\n${piece}`, state: "done" }],
  }));
  const chat = { id: "history", title: "History", messages, status: "ready" };
  await page.route("**/api/chats/history", (route) => route.fulfill({ json: chat }));
  await page.goto(`${url}/?chat=history`);
  await page.reload();
  // Wait for the newest message and the frame after it.
  await page.getByRole("button", { name: "Answer again" }).waitFor();
  const milliseconds = await page.evaluate(
    () => new Promise<number>((resolve) => requestAnimationFrame(() => resolve(performance.now()))),
  );
  process.stdout.write(
    `page: ${MESSAGES} messages, first paint of the thread after ` +
      `${Math.round(milliseconds)} ms (at most 1000)\n`,
  );
  await page.close();
}

const folder = await mkdtemp(join(tmpdir(), "sluicegate-page-"));
const built = join(folder, "built");
const root = join(ROOT, "frontend/app");
const settings = { outDir: built, minify: false, emptyOutDir: true };
await build({ root, mode: "bench", logLevel: "error", build: settings });
const answerResponses = [{ parts: [{ text: answer }], delta_chars: DELTA, delay_ms: 0 }];
const payment = { call: { name: "pay", args: { recipient: "Ada", amount: 50 } } };
const servers: Server[] = [];
const browser = await chromium.launch(config.use?.launchOptions ?? {});
try {
  const writer = await serve(join(folder, "writer"), WRITER, answerResponses);
  servers.push(writer);
  const context = await browser.newContext();
  await servePage(context, writer.url, built);
  await longAnswer(context, writer.url);
  await longHistory(context, writer.url);
  await longChat(context, writer.url, piece, end);
  await context.close();
  const payer = await serve(join(folder, "payer"), PAYER, [{ parts: [payment] }]);
  servers.push(payer);
  await firstCard(browser, payer);
} finally {
  await browser.close();
  for (const { process } of servers) process.kill();
  await rm(folder, { recursive: true, force: true });
}
