import type { Locator, Page } from "@playwright/test";
import { expect, test } from "./fixtures.ts";

/** Pixels by which the card moves. */
const SHIFT = 120;

/** Move the card under the pointer, which stays where it is, or back. */
async function shift(card: Locator, pixels: number): Promise<void> {
  await card.evaluate((element, pixels) => {
    element.style.position = "relative";
    element.style.top = `${-pixels}px`;
  }, pixels);
}

/** Press where the pointer is, without moving it. */
async function press(page: Page): Promise<void> {
  await page.mouse.down();
  await page.mouse.up();
}

/** The decisions that the page sends. */
function decisionsOf(page: Page): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/api/approvals/")) sent.push(request.postData() ?? "");
  });
  return sent;
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a button that moves under a resting pointer accepts no press, for a second at most, ${transport}`, async ({
    chat,
  }) => {
    const { page } = chat;
    const { clock } = page;
    await clock.install();
    await chat.open({ transport });
    const sent = decisionsOf(page);
    await chat.send("Pay Ada 50 euros");
    const card = chat.card("Send money");
    const approve = card.getByRole("button", { name: "Approve", exact: true });
    await expect(approve).toBeEnabled();
    const box = await approve.boundingBox();
    await page.mouse.move(5, 5);
    await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 10 - SHIFT);
    // From here on, time passes only as the test says.
    await clock.pauseAt(Date.now() + 60_000);

    await shift(card, SHIFT);
    await press(page);
    await expect(card).toContainText("waits for you");
    for (const milliseconds of [400, 400]) {
      await clock.fastForward(milliseconds);
      await shift(card, 0);
      await press(page);
      await shift(card, SHIFT);
      await press(page);
    }
    await expect(card).toContainText("waits for you");
    // The button keeps its place in the tab order.
    await expect(approve).not.toHaveAttribute("disabled");
    expect(sent).toEqual([]);

    await clock.fastForward(400);
    await shift(card, 0);
    await press(page);
    await shift(card, SHIFT);
    await press(page);
    await expect.poll(() => sent).toHaveLength(1);
    await clock.resume();
    await expect(chat.answer).toContainText("The payment is settled");
  });
}

test("a button that has moved accepts after half a second, and a key at once", async ({ chat }) => {
  const { page } = chat;
  const { clock } = page;
  await clock.install();
  await chat.open();
  const sent = decisionsOf(page);
  for (const input of ["pointer", "key"] as const) {
    await chat.send("Pay Ada 50 euros");
    const card = chat.card("Send money");
    const approve = card.getByRole("button", { name: "Approve", exact: true });
    await expect(approve).toBeEnabled();
    await approve.focus();
    const box = await approve.boundingBox();
    await page.mouse.move(5, 5);
    await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 10 - SHIFT);
    await clock.pauseAt((await page.evaluate(() => Date.now())) + 10_000);
    const before = sent.length;
    await shift(card, SHIFT);
    await press(page);
    await expect(card).toContainText("waits for you");
    expect(sent).toHaveLength(before);
    if (input === "key") await page.keyboard.press("Enter");
    else {
      await clock.fastForward(500);
      await press(page);
    }
    await expect.poll(() => sent).toHaveLength(before + 1);
    await clock.resume();
    await expect(chat.answer).toContainText("The payment is settled");
    await chat.waitForEnd();
  }
});
