import type { BrowserContext } from "@playwright/test";
import { ChatPage } from "./chat-page.ts";
import type { DemoServer } from "./demo-server.ts";
import { expect, test } from "./test.ts";

/** Chats over each transport on one server: its death is the same one for all of them. */
async function chatsOn(context: BrowserContext, server: DemoServer): Promise<ChatPage[]> {
  const chats: ChatPage[] = [];
  for (const transport of ["sse", "websocket"] as const) {
    const page = await context.newPage();
    chats.push(await new ChatPage(page, server).open({ transport }));
  }
  return chats;
}

test("a server dies while cards wait, and each yes still pays once", async ({ context, own }) => {
  const chats = await chatsOn(context, own);
  for (const chat of chats) {
    await chat.say("Pay Ada 50 euros");
    await expect(chat.card("Send money")).toBeVisible();
  }
  await own.kill();
  await own.start();
  for (const [index, chat] of chats.entries()) {
    await chat.approve("Send money");
    await expect(chat.answer).toContainText("The payment is settled");
    await chat.finished();
    expect(await own.effects()).toHaveLength(index + 1);
  }
});

test("a server dies in the middle of answers, and the pages say so", async ({ context, own }) => {
  const chats = await chatsOn(context, own);
  for (const chat of chats) await chat.say("Tell me a long story");
  for (const chat of chats) await expect(chat.answer).toContainText("Once a miller");
  await own.kill();
  for (const chat of chats) await expect(chat.alert).toBeVisible();
  await own.start();
  for (const chat of chats) {
    await chat.say("Hello!");
    await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
  }
});
