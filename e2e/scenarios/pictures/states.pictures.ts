import { createHash } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { ChatPage } from "../chat-page.ts";
import { DemoServer } from "../demo-server.ts";
import { expect, test } from "../fixtures.ts";

const FOLDER = join(import.meta.dirname, "../../../build/pictures");
const SIZES = {
  desktop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844 },
};

/** Save the page in each size and colour scheme. */
async function savePictures(page: Page, state: string): Promise<void> {
  // A button that accepts is locked while it has just arrived.
  const accept = page.getByRole("button", { name: /^Approve( and do not ask again)?$/ });
  if ((await accept.count()) > 0) await expect(accept.first()).toBeEnabled();
  for (const [device, size] of Object.entries(SIZES)) {
    await page.setViewportSize(size);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const path = join(FOLDER, `${state}-${device}-${colorScheme}.png`);
      await page.screenshot({ path, animations: "disabled" });
    }
  }
}

async function showChats(chat: ChatPage): Promise<void> {
  await chat.page.setViewportSize(SIZES.phone);
  await chat.page.getByRole("button", { name: "Show the chats" }).click();
}

const STATES: Record<string, (chat: ChatPage) => Promise<void>> = {
  empty: async () => {},
  answer: async (chat) => {
    await chat.send("Compute the first five squares");
    await chat.waitForEnd();
  },
  streaming: async (chat) => {
    await chat.send("Think about it for ever");
    await expect(chat.answer).toContainText("will not stop by myself");
  },
  queued: async (chat) => {
    await STATES.streaming?.(chat);
    await chat.message.fill("And pay Ada 50 euros");
    await chat.message.press("Enter");
    await expect(chat.page.getByRole("button", { name: "Do not send" })).toBeVisible();
  },
  card: async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await expect(chat.cards).toHaveCount(1);
  },
  preview: async (chat) => {
    await chat.send("Archive the old documents, and look again");
    const preview = chat.page.getByRole("region", { name: "What this call would do" });
    await expect(preview.getByRole("row")).toHaveCount(5);
  },
  "two people": async (chat) => {
    await chat.send("Transfer 5000 euros to the landlord");
    await expect(chat.cards).toHaveCount(1);
  },
  group: async (chat) => {
    await chat.send("Search and update the database at the same time");
    await expect(chat.cards).toHaveCount(2);
  },
  "nested arguments": async (chat) => {
    await chat.send("Order paper for the office");
    await expect(chat.cards).toHaveCount(1);
  },
  edit: async (chat) => {
    await STATES["nested arguments"]?.(chat);
    const card = chat.card("Order supplies");
    await card.getByRole("button", { name: "Edit" }).click();
    await card.getByRole("textbox", { name: "count" }).first().fill("2.5");
    await card.getByRole("button", { name: "Approve with changes" }).click();
    await expect(card).toContainText("Type a whole number.");
  },
  grant: async (chat) => {
    await STATES.card?.(chat);
    await chat.card("Send money").getByRole("button", { name: "Do not ask again…" }).click();
    await expect(chat.card("Send money").getByRole("button", { name: "Continue" })).toBeVisible();
  },
  "grant confirmation": async (chat) => {
    await STATES.grant?.(chat);
    await chat.card("Send money").getByRole("button", { name: "Continue" }).click();
    await expect(chat.card("Send money")).toContainText("Approve this call, and these later ones");
  },
  denied: async (chat) => {
    await STATES.card?.(chat);
    await chat.deny("Send money", "Not before Friday");
    await chat.waitForEnd();
  },
  edited: async (chat) => {
    await STATES.card?.(chat);
    const card = chat.card("Send money");
    await card.getByRole("button", { name: "Edit" }).click();
    await card.getByRole("textbox", { name: "amount" }).fill("40");
    await card.getByRole("button", { name: "Approve with changes" }).click();
    await chat.waitForEnd();
  },
  error: async (chat) => {
    await chat.send("Show me how you fail");
    await expect(chat.alert).toBeVisible();
  },
  offline: async (chat) => {
    await chat.page.context().setOffline(true);
    await chat.message.fill("Pay Ada 50 euros");
    await chat.message.press("Enter");
    await expect(chat.page.getByRole("main")).toContainText("Reconnecting…");
  },
  chats: async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await expect(chat.cards).toHaveCount(1);
    await chat.page.getByRole("button", { name: "New chat" }).click();
    await chat.send("Think about it for ever");
    await expect(chat.answer).toContainText("will not stop by myself");
    await chat.page.reload();
    await expect(chat.page.getByRole("img", { name: "Running" }).first()).toBeVisible();
    await showChats(chat);
  },
  developer: async (chat) => {
    await chat.page.getByRole("button", { name: "Developer tools", exact: true }).click();
    await expect(chat.page.getByRole("dialog", { name: "Developer tools" })).toBeVisible();
    await chat.send("Hello!");
    await chat.waitForEnd();
  },
  manage: async (chat) => {
    await chat.send("Hello!");
    await chat.waitForEnd();
    await chat.page.getByRole("button", { name: "Rename or delete: Hello!" }).first().click();
    await expect(chat.page.getByRole("dialog", { name: "Chat settings" })).toBeVisible();
  },
};

for (const [state, reach] of Object.entries(STATES)) {
  test(state, async ({ page, server }) => {
    const chat = await new ChatPage(page, server).open();
    await reach(chat);
    await savePictures(page, state);
  });
}

test("sign-in and identity", async ({ page }) => {
  const folder = await mkdtemp(join(tmpdir(), "sluicegate-tokens-"));
  const file = join(folder, "tokens");
  await writeFile(file, `sha256:${createHash("sha256").update("secret").digest("hex")} ada\n`);
  const server = await DemoServer.start("--auth", `bearer:${file}`);
  await page.goto(server.url);
  await expect(page.getByRole("textbox", { name: "Token" })).toBeVisible();
  await savePictures(page, "sign-in");
  await page.getByRole("textbox", { name: "Token" }).fill("secret");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByText("Signed in as")).toBeAttached();
  await savePictures(page, "identity");
  await server.close();
});

test("inbox", async ({ page }) => {
  const server = await DemoServer.start();
  const chat = await new ChatPage(page, server).open();
  const ask = async (text: string) => {
    await page.goto(server.url);
    await chat.send(text);
    await expect(chat.cards.first()).toBeVisible();
  };
  await ask("Pay Ada 50 euros");
  await server.dieDuringCalls();
  await server.start();
  await ask("Pay Ada 70 euros");
  await ask("Search and update the database at the same time");
  await ask("Order paper for the office");
  await page.goto(`${server.url}/inbox`);
  const rows = page.getByRole("list", { name: "Waiting approvals" }).getByRole("listitem");
  await expect(rows).toHaveCount(4);
  await rows.first().getByRole("checkbox").check();
  await savePictures(page, "inbox");
  await rows.first().getByRole("link").click();
  await expect(page.getByRole("region", { name: /^Approval/ })).toBeVisible();
  await savePictures(page, "inbox-card");
  await page.goto(`${server.url}/inbox?view=unknown`);
  await expect(page.getByRole("heading", { name: /^Send money/ })).toBeVisible();
  await savePictures(page, "inbox-unknown");
  await page.goto(`${server.url}/inbox?view=history`);
  await expect(page.getByText("every line of the audit trail")).toBeVisible();
  await savePictures(page, "inbox-history");
  await server.close();
});
