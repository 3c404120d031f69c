import { gzipSync } from "node:zlib";
import type { Request, Response } from "@playwright/test";
import { expect, test } from "./fixtures.ts";

/** Bytes, compressed, until the first card can be answered. */
const LIMITS = { script: 190_000, stylesheet: 15_000 };

test("a page is small until its first card can be answered", async ({ chat }) => {
  await chat.open();
  // An agent that asks without a text; the code that shows text is loaded beside a card.
  await chat.send("Pay my five invoices one after the other");
  await expect(chat.card("Send money")).toBeVisible();
  // A page that follows a running answer loads more.
  await expect(chat.page.getByRole("button", { name: "Stop" })).toHaveCount(0);
  const responses: Response[] = [];
  chat.page.on("response", (response) => responses.push(response));
  await chat.page.reload();
  await expect(chat.card("Send money").getByRole("button", { name: "Approve" })).toBeEnabled();
  const loaded = [...responses];
  for (const type of ["script", "stylesheet"] as const) {
    const files = loaded.filter((response) => response.request().resourceType() === type);
    const bodies = await Promise.all(files.map((file) => file.body()));
    const bytes = bodies.reduce((sum, body) => sum + gzipSync(body).length, 0);
    expect(bytes, `bytes of each ${type}`).toBeGreaterThan(1_000);
    expect(bytes, `bytes of each ${type}`).toBeLessThanOrEqual(LIMITS[type]);
  }
  await chat.deny("Send money");
});

test("a page requests its chat while its script still loads, and once", async ({ chat }) => {
  await chat.open();
  await chat.send("Pay my five invoices one after the other");
  await expect(chat.card("Send money")).toBeVisible();
  const query = chat.query;
  const id = new URLSearchParams(query).get("chat") ?? "";
  // The page that is left makes no more requests.
  await chat.page.goto("about:blank");
  const isChat = (request: Request) => new URL(request.url()).pathname === `/api/chats/${id}`;
  const requests: Request[] = [];
  chat.page.on("request", (request) => isChat(request) && requests.push(request));
  // The first event has the page compare its chat with the stored one.
  await chat.page.route("**/api/events*", (route) => route.abort());
  const loaded = chat.page.waitForResponse((response) => isChat(response.request()));
  await chat.page.route("**/assets/index-*.js", async (route) => {
    await loaded;
    await route.continue();
  });
  await chat.page.goto(`${chat.url}/${query}`);
  await expect(chat.card("Send money")).toBeVisible();
  expect(requests).toHaveLength(1);
  await chat.deny("Send money");
});
