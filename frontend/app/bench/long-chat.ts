import type { BrowserContext, Page } from "@playwright/test";
import { measureWork } from "./page-work.ts";

const MESSAGES = 300;
/** Pixels by which rounding may change a height. */
const TOLERANCE = 2;

/** What a person sees of the thread, from frame to frame. */
interface Frames {
  /** The largest number of pixels by which the thread became shorter. */
  readonly shrunk: number;
  /** The largest distance of the visible end from the end of the thread. */
  readonly fromEnd: number;
}

/** Observe the thread as it is painted until the returned function is called. */
async function observeFrames(page: Page): Promise<() => Promise<Frames>> {
  const frames = await page.locator("[role=log]").evaluateHandle((thread) => {
    const observed = { shrunk: 0, fromEnd: 0, stop: () => {} };
    let height = 0;
    // It is notified before a frame is painted, and after the observer of the page itself.
    const observer = new ResizeObserver(() => {
      const { scrollHeight, scrollTop, clientHeight } = thread;
      observed.shrunk = Math.max(observed.shrunk, height - scrollHeight);
      observed.fromEnd = Math.max(observed.fromEnd, scrollHeight - scrollTop - clientHeight);
      height = scrollHeight;
    });
    observer.observe(thread.firstElementChild as Element);
    observed.stop = () => observer.disconnect();
    return observed;
  });
  return () =>
    frames.evaluate((observed) => {
      observed.stop();
      return { shrunk: observed.shrunk, fromEnd: observed.fromEnd };
    });
}

/**
 * Wait until there are so many messages and a condition holds of the last one. Queries by role would
 * be work of the page.
 */
async function waitForLast(
  page: Page,
  count: number,
  condition: (message: Element) => boolean,
): Promise<void> {
  await page.waitForFunction(
    `(() => {
      const messages = [...document.querySelectorAll("[role=log] article")];
      return messages.length >= ${count} && (${condition})(messages.at(-1));
    })()`,
    undefined,
    { polling: 250, timeout: 120_000 },
  );
}

/** Scroll to the first message; returns by how many pixels the height of the thread changed. */
async function scrollThrough(page: Page): Promise<number> {
  return page.getByRole("log").evaluate(async (thread) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const heights = [thread.scrollHeight];
    while (thread.scrollTop > 0) {
      thread.scrollTop -= thread.clientHeight;
      await frame();
      await frame();
      heights.push(thread.scrollHeight);
    }
    return Math.max(...heights) - Math.min(...heights);
  });
}

/** Measure an answer that streams below a long history. */
export async function longChat(
  context: BrowserContext,
  url: string,
  text: string,
  end: string,
): Promise<void> {
  const page = await context.newPage();
  const messages = Array.from({ length: MESSAGES }, (_, index) => ({
    id: `m${index}`,
    role: index % 2 === 0 ? "user" : "assistant",
    parts: [{ type: "text", text: `${index}\n\n${text}`, state: "done" }],
  }));
  const chat = { id: "long", title: "Long", messages, status: "ready" };
  await page.route("**/api/chats/long", async (route) => {
    const response = await route.fetch();
    // The server has the chat once it has a message; the page loads it again after the answer.
    const stored = response.ok() ? await response.json() : { messages: [] };
    await route.fulfill({ json: { ...chat, messages: [...messages, ...stored.messages] } });
  });
  let frames: Frames = { shrunk: 0, fromEnd: 0 };
  const { longestTask } = await measureWork(page, async () => {
    await page.goto(`${url}/?chat=long`);
    // The first messages have no markup until the parser is loaded.
    await waitForLast(page, 1, (message) => message.querySelector("ul") !== null);
    const stop = await observeFrames(page);
    await page.locator("textarea").fill("Write");
    await page.keyboard.press("Enter");
    await waitForLast(page, MESSAGES + 2, ({ ariaBusy }) => ariaBusy === "false");
    frames = await stop();
  });
  await page.getByText(end).waitFor();
  const changed = await scrollThrough(page);
  process.stdout.write(
    `page: below ${MESSAGES} messages the longest task takes ${Math.round(longestTask)} ms (at ` +
      `most 100); the thread shrinks by ${frames.shrunk} px and leaves its end by ` +
      `${Math.round(frames.fromEnd)} px meanwhile, and its height changes by ${changed} px while ` +
      `it is scrolled to its start (each at most ${TOLERANCE})\n`,
  );
  await page.close();
}
