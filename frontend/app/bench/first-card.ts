import { gzipSync } from "node:zlib";
import type { Browser, Page } from "@playwright/test";
import type { Server } from "./servers.ts";

const ROUNDS = 5;
/** A mobile network: 1.6 Mbit/s down, 750 kbit/s up, and 150 ms for each round trip. */
const NETWORK = {
  offline: false,
  latency: 150,
  downloadThroughput: 1_600_000 / 8,
  uploadThroughput: 750_000 / 8,
};
const SLOWDOWN = 4;

/** What a page needs until its first card can be answered. */
export interface FirstCard {
  /** Milliseconds until the card is there; its buttons ignore presses for some time after that. */
  readonly shown: number;
  readonly answerable: number;
  /** Bytes, compressed. */
  readonly scripts: number;
  readonly styles: number;
}

/** Open the chat with an approval that waits, on a slow machine with a slow network. */
async function open(page: Page, url: string): Promise<FirstCard> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", NETWORK);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  const bodies: { type: string; body: Promise<Buffer> }[] = [];
  page.on("response", (response) => {
    const type = response.request().resourceType();
    if (type === "script" || type === "stylesheet") bodies.push({ type, body: response.body() });
  });
  await page.addInitScript(() => {
    // The clock of the page itself: a poll from outside would add its interval.
    const observer = new MutationObserver(() => {
      const buttons = [...document.querySelectorAll("[data-approval] button")];
      const approve = buttons.find(({ textContent }) => textContent === "Approve");
      if (approve === undefined) return;
      const { dataset } = document.documentElement;
      dataset.shown ??= String(performance.now());
      if (approve.ariaDisabled === "true") return;
      observer.disconnect();
      dataset.answerable = String(performance.now());
    });
    observer.observe(document, { attributes: true, childList: true, subtree: true });
  });
  await page.goto(url);
  const root = page.locator("html[data-answerable]");
  await root.waitFor({ timeout: 60_000 });
  const shown = Number(await root.getAttribute("data-shown"));
  const answerable = Number(await root.getAttribute("data-answerable"));
  const received = [...bodies];
  const size = async (type: string) => {
    const texts = await Promise.all(
      received.filter((each) => each.type === type).map(({ body }) => body),
    );
    return texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
  };
  return { shown, answerable, scripts: await size("script"), styles: await size("stylesheet") };
}

/** Measure the page that the server itself serves, each time in a new browser profile. */
export async function firstCard(browser: Browser, { url }: Server): Promise<void> {
  const chat = `${url}/?chat=card`;
  const message = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay Ada" }] };
  const first = await browser.newContext();
  const asked = await first.request.post(`${url}/api/chat`, { data: { id: "card", message } });
  if (!(await asked.text()).includes("tool-approval-request")) throw new Error("No approval.");
  await first.close();
  const rounds: FirstCard[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const context = await browser.newContext();
    rounds.push(await open(await context.newPage(), chat));
    await context.close();
  }
  const sorted = (name: "shown" | "answerable") =>
    rounds.map((round) => Math.round(round[name])).sort((a, b) => a - b);
  const times = sorted("answerable");
  const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1);
  const { scripts, styles } = rounds[0] as FirstCard;
  process.stdout.write(
    `page: the first card is shown after ${sorted("shown")[ROUNDS >> 1]} ms and can be answered ` +
      `after ${times[ROUNDS >> 1]} ms (${times[0]} - ${times.at(-1)}; at most 2300) on 1.6 Mbit/s ` +
      `with 150 ms and a ${SLOWDOWN} times slower processor, with ${kilobytes(scripts)} kB of ` +
      `scripts (at most 190) and ${kilobytes(styles)} kB of styles (at most 15)\n`,
  );
}
