import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext } from "@playwright/test";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
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

/** A payment, and an answer of the model that takes its time. */
function paymentScript(delay_ms: number): string {
  const args = { recipient: "Ada", amount: 50, currency: "EUR" };
  const responses = [
    { parts: [{ call: { name: "process_payment", args } }] },
    { parts: [{ text: "The payment is settled." }], delay_ms },
  ];
  return JSON.stringify({ scenarios: [{ match: "", responses }] });
}

test("an answer that a crash cut after a payment continues, in open pages and in new ones", async ({
  context,
}) => {
  const folder = await mkdtemp(join(tmpdir(), "sluicegate-restart-"));
  const script = join(folder, "script.json");
  await writeFile(script, paymentScript(600_000));
  const server = await DemoServer.start("--model-script", script);
  const chats = await chatsOn(context, server);
  chats.push(await new ChatPage(await context.newPage(), server).open());
  for (const [index, chat] of chats.entries()) {
    await chat.send("Pay Ada 50 euros");
    await chat.approve("Send money");
    await expect.poll(() => server.effects()).toHaveLength(index + 1);
    await expect(chat.tool("Send money")).toContainText("done");
  }
  const closed = chats.at(-1)?.page;
  const address = closed?.url() ?? "";
  await closed?.goto("about:blank");
  await server.kill();
  await writeFile(script, paymentScript(0));
  await server.start();
  await closed?.goto(address);
  for (const chat of chats) {
    await expect(chat.answer).toContainText("The payment is settled.");
    await chat.waitForEnd();
    await expect(chat.alert).toHaveCount(0);
  }
  expect(await server.effects()).toHaveLength(chats.length);
  await server.close();
  await rm(folder, { recursive: true });
});

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
