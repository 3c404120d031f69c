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

/** Observe the height of the thread in each frame until the returned function is called. */
async function observeFrames(page: Page): Promise<() => Promise<Frames>> {
  const frames = await page.evaluateHandle(() => {
    const observed = { shrunk: 0, fromEnd: 0, isDone: false };
    let height = 0;
    const observe = () => {
      const thread = document.querySelector("[role=log]");
      if (thread !== null) {
        const { scrollHeight, scrollTop, clientHeight } = thread;
        observed.shrunk = Math.max(observed.shrunk, height - scrollHeight);
        observed.fromEnd = Math.max(observed.fromEnd, scrollHeight - scrollTop - clientHeight);
        height = scrollHeight;
      }
      if (!observed.isDone) requestAnimationFrame(observe);
    };
    requestAnimationFrame(observe);
    return observed;
  });
  return () =>
    frames.evaluate((observed) => {
      observed.isDone = true;
      return observed;
    });
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
  await page.route("**/api/chats/long", (route) => route.fulfill({ json: chat }));
  let frames: Frames = { shrunk: 0, fromEnd: 0 };
  const { longestTask } = await measureWork(page, async () => {
    await page.goto(`${url}/?chat=long`);
    await page.getByRole("button", { name: "Answer again" }).waitFor();
    const stop = await observeFrames(page);
    await page.getByRole("textbox", { name: "Message" }).fill("Write");
    await page.keyboard.press("Enter");
    await page.getByText(end).waitFor({ timeout: 120_000 });
    await page.getByRole("button", { name: "Answer again" }).waitFor();
    await page.getByRole("article").nth(MESSAGES).waitFor({ state: "attached" });
    frames = await stop();
  });
  const changed = await scrollThrough(page);
  process.stdout.write(
    `page: below ${MESSAGES} messages the longest task takes ${Math.round(longestTask)} ms (at ` +
      `most 100); the thread shrinks by ${frames.shrunk} px and leaves its end by ` +
      `${Math.round(frames.fromEnd)} px meanwhile, and its height changes by ${changed} px while ` +
      `it is scrolled to its start (each at most ${TOLERANCE})\n`,
  );
  await page.close();
}
