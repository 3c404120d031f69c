import type { BrowserContext } from "@playwright/test";
import { ChatPage } from "./chat-page.ts";
import type { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";

/** A chat for each transport on one server, so that they share its restart. */
async function chatsOn(context: BrowserContext, server: DemoServer): Promise<ChatPage[]> {
  const chats: ChatPage[] = [];
  for (const transport of ["sse", "websocket"] as const) {
    const page = await context.newPage();
    chats.push(await new ChatPage(page, server).open({ transport }));
  }
  return chats;
}

test("approvals pending across a restart pay once each", async ({ context, ownServer }) => {
  const chats = await chatsOn(context, ownServer);
  for (const chat of chats) {
    await chat.send("Pay Ada 50 euros");
    await expect(chat.card("Send money")).toBeVisible();
  }
  await ownServer.kill();
  await ownServer.start();
  for (const [index, chat] of chats.entries()) {
    await chat.approve("Send money");
    await expect(chat.answer).toContainText("The payment is settled");
    await chat.waitForEnd();
    expect(await ownServer.effects()).toHaveLength(index + 1);
  }
});

test("a server crash during answers is visible, and the chats continue after a restart", async ({
  context,
  ownServer,
}) => {
  const chats = await chatsOn(context, ownServer);
  for (const chat of chats) await chat.send("Are you stuck?");
  for (const chat of chats) await expect(chat.answer).toContainText("I am thinking about it");
  await ownServer.kill();
  for (const chat of chats) await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
  await ownServer.start();
  for (const chat of chats) {
    await expect(chat.page.getByText("Reconnecting…")).toBeHidden();
    await expect(chat.answer).toContainText("I am thinking about it");
    await expect(chat.alert).toContainText("The answer was interrupted. Try again.");
  }
  for (const chat of chats) {
    await chat.send("Hello!");
    await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
  }
});
