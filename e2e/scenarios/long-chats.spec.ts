import type { Page } from "@playwright/test";
import type { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

const MESSAGES = 60;
const PARAGRAPH = "The **gate** holds the water back, and a person lets it go. ".repeat(6);
const TEXT = `## On gates\n\n${PARAGRAPH}\n\n- one\n- two\n\n    lift(gate)\n`;
const STORY_END = "all there is to tell about gates.";

/** Open a chat whose history is longer than the visible area. */
async function openHistory(chat: ChatPage, transport: "sse" | "websocket"): Promise<void> {
  const id = `long-${transport}`;
  const messages = Array.from({ length: MESSAGES }, (_, index) => ({
    id: `m${index}`,
    role: index % 2 === 0 ? "user" : "assistant",
    parts: [{ type: "text", text: `${index}\n\n${TEXT}`, state: "done" }],
  }));
  await chat.page.route(`**/api/chats/${id}`, async (route) => {
    const response = await route.fetch();
    const stored = response.ok() ? await response.json() : { status: "ready", messages: [] };
    const all = [...messages, ...stored.messages];
    await route.fulfill({ json: { ...stored, id, title: "Long", messages: all } });
  });
  await chat.open({ transport }, `?chat=${id}`);
}

/** Record by how much the thread becomes shorter or leaves its end, as it is painted. */
async function observeThread(page: Page) {
  const observed = await page.getByRole("log").evaluateHandle((thread) => {
    const record = { shrunk: 0, fromEnd: 0 };
    let height = 0;
    new ResizeObserver(() => {
      const { scrollHeight, scrollTop, clientHeight } = thread;
      record.shrunk = Math.max(record.shrunk, height - scrollHeight);
      record.fromEnd = Math.max(record.fromEnd, scrollHeight - scrollTop - clientHeight);
      height = scrollHeight;
    }).observe(thread.firstElementChild as Element);
    return record;
  });
  return () => observed.jsonValue();
}

for (const transport of ["sse", "websocket"] as const) {
  test(`an answer below a long history is followed, and no height jumps, ${transport}`, async ({
    chat,
  }) => {
    await openHistory(chat, transport);
    const articles = chat.log.getByRole("article");
    await expect(articles.last().getByRole("list")).toBeVisible();
    const observed = await observeThread(chat.page);
    await chat.send("Tell me a long story");
    await expect(chat.answer).toContainText(STORY_END);
    await chat.waitForEnd();
    await expect(articles).toHaveCount(MESSAGES + 2);
    const { shrunk, fromEnd } = await observed();
    expect(shrunk).toBeLessThanOrEqual(2);
    expect(fromEnd).toBeLessThanOrEqual(2);
    await expect(chat.log.locator("article:not(.measured)")).toHaveCount(0);
    const changed = await chat.log.evaluate(async (thread) => {
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
    expect(changed).toBeLessThanOrEqual(2);
  });
}
