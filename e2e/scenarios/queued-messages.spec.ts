import { expect, test } from "./fixtures.ts";

const NOTE = "This message is sent when the answer is complete.";
const STORY_END = "all there is to tell about gates.";

for (const transport of ["sse", "websocket"] as const) {
  test.describe(`over ${transport}`, () => {
    test("a message that is sent during an answer follows it", async ({
      distantChat: chat,
      network,
    }) => {
      await chat.open({ transport });
      network.holdAfter("Once a miller");
      await chat.send("Tell me a long story");
      await expect(chat.page.getByRole("button", { name: "Stop" })).toBeVisible();
      await chat.message.fill("Hello!");
      await chat.message.press("Enter");
      await expect(chat.page.getByText(NOTE)).toBeVisible();
      network.release();
      await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
      await chat.waitForEnd();
      await expect(chat.page.getByText(NOTE)).toBeHidden();
      await expect(chat.message).toHaveValue("");
      await expect(chat.log.getByText(STORY_END)).toBeVisible();
      await expect(chat.log.getByRole("article", { name: "You" })).toHaveText([/story/, /Hello!/]);
    });

    test("a message that is sent at once in a reloaded page follows the running answer", async ({
      chat,
    }) => {
      await chat.open({ transport });
      await chat.send("Tell me a long story");
      await expect(chat.answer).toContainText("Once a miller");
      await chat.page.reload();
      await chat.message.fill("Hello!");
      await chat.message.press("Enter");
      await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
      await expect(chat.log.getByText(STORY_END)).toBeVisible();
      await expect(chat.log.getByRole("article", { name: "You" })).toHaveText([/story/, /Hello!/]);
      await expect(chat.alert).toHaveCount(0);
    });

    test("stopping the answer keeps a queued message as a draft", async ({ chat }) => {
      await chat.open({ transport });
      await chat.send("Are you stuck?");
      await expect(chat.answer).toContainText("I am thinking about it");
      await chat.message.fill("Hello!");
      await chat.message.press("Enter");
      await expect(chat.page.getByText(NOTE)).toBeVisible();
      await chat.page.getByRole("button", { name: "Stop" }).click();
      await expect(chat.answer.getByText("Stopped", { exact: true })).toBeVisible();
      await expect(chat.page.getByText(NOTE)).toBeHidden();
      await expect(chat.message).toHaveValue("Hello!");
      await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
    });
  });
}
