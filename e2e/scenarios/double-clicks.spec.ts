import { expect, test } from "./fixtures.ts";
import { clickOnArrival } from "./reflexes.ts";

/** Milliseconds between the clicks of a double click. */
const INTERVAL = 200;

test("a double click on the button that deletes a chat only asks for a confirmation", async ({
  chat,
}) => {
  await chat.open();
  await chat.send("Hello! What can you do?");
  await chat.waitForEnd();
  await chat.page
    .getByRole("button", { name: /^Rename or delete: Hello/ })
    .first()
    .click();
  const dialog = chat.page.getByRole("dialog");
  const clicked = await clickOnArrival(chat.page, {
    button: "Delete for good",
    milliseconds: INTERVAL,
  });
  await dialog.getByRole("button", { name: "Delete" }).click();
  await clicked();
  await expect(dialog.getByText("for good, with all its messages?")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Keep it" })).toBeFocused();
  await chat.page.keyboard.press("Enter");
  await expect(dialog.getByRole("button", { name: "Delete" })).toBeFocused();
  await chat.page.keyboard.press("Escape");
  await chat.page.reload();
  await expect(chat.answer).toContainText("I can look up the weather");
});

for (const transport of ["sse", "websocket"] as const) {
  test(`a double click on Send does not stop the answer, over ${transport}`, async ({ chat }) => {
    await chat.open({ transport });
    await chat.message.fill("Tell me a long story");
    const clicked = await clickOnArrival(chat.page, { button: "Stop", milliseconds: INTERVAL });
    await chat.page.getByRole("button", { name: "Send" }).click();
    await clicked();
    await expect(chat.answer).toContainText("all there is to tell about gates.");
    await chat.waitForEnd();
    await expect(chat.answer.getByText("Stopped", { exact: true })).toHaveCount(0);
  });

  test(`a click on Stop at the end of an answer does not send the draft, over ${transport}`, async ({
    distantChat: chat,
    network,
  }) => {
    await chat.open({ transport });
    // The answer ends when the page waits for its end.
    network.holdAfter("Once a miller");
    await chat.send("Tell me a long story");
    await expect(chat.page.getByRole("button", { name: "Stop" })).toBeVisible();
    await chat.message.fill("Pay Ada 50 euros");
    const clicked = await clickOnArrival(chat.page, { button: "Send", milliseconds: INTERVAL });
    network.release();
    await clicked();
    await chat.waitForEnd();
    await expect(chat.message).toHaveValue("Pay Ada 50 euros");
    await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
    await chat.page.getByRole("button", { name: "Send" }).click();
    await expect(chat.card("Send money")).toBeVisible();
  });
}
