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
  card: async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await expect(chat.cards).toHaveCount(1);
  },
  group: async (chat) => {
    await chat.send("Search and update the database at the same time");
    await expect(chat.cards).toHaveCount(2);
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
