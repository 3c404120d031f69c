import { devices, type Route } from "@playwright/test";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

const ARCHIVE = "Archive the old documents, and look again";

test("a card shows what a call would do, and shows it anew when it has changed", async ({
  page,
  ownServer: server,
  browser,
}) => {
  const chat = await new ChatPage(page, server).open();
  await chat.send(ARCHIVE);
  const preview = page.getByRole("region", { name: "What this call would do" });
  await expect(preview.getByRole("row")).toHaveCount(5);
  await expect(preview).toContainText("Rental agreement 2019.pdf");
  expect(await accessibilityViolations(page)).toEqual([]);

  // Another chat archives a part of them, by an edit that is shown before it is approved.
  const other = await new ChatPage(await page.context().newPage(), server).open();
  await other.page.goto(`${server.url}/`);
  await other.send("Archive the old documents");
  await other.page.getByRole("button", { name: "Edit", exact: true }).click();
  await other.page.getByRole("textbox", { name: "unread_days" }).fill("1400");
  await other.page
    .getByRole("button", { name: /^Approve/ })
    .last()
    .click();
  await expect(other.page.getByText("The call has changed")).toBeVisible();
  const edited = other.page.getByRole("region", { name: "What this call would do" });
  await expect(edited.getByRole("row")).toHaveCount(2);
  await other.page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(other.page.getByText("the documents on the list are in the archive")).toBeVisible();

  // The approval of the first card does not cover what is left.
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(page.getByText("It has changed since it was approved")).toBeVisible();
  await expect(preview.getByRole("row").filter({ hasText: "gone" })).toContainText(
    "Rental agreement 2019.pdf",
  );
  expect(await accessibilityViolations(page)).toEqual([]);

  // The same card in the inbox, on a phone.
  const { defaultBrowserType: _, ...phone } = devices["iPhone 13"];
  const context = await browser.newContext({ ...phone, colorScheme: "dark" });
  const pocket = await context.newPage();
  await pocket.goto(`${server.url}/inbox`);
  await pocket.getByRole("link", { name: /Archive documents/ }).click();
  const small = pocket.getByRole("region", { name: "What this call would do" });
  await expect(small.getByRole("row")).toHaveCount(5);
  const width = await pocket.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(phone.viewport.width);
  expect(await accessibilityViolations(pocket)).toEqual([]);
  await context.close();

  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(page.getByText("That is all I do about the documents.")).toBeVisible();
});

test("a card that was loaded before its preview was stored shows it later", async ({
  page,
  ownServer: server,
}) => {
  const chat = await new ChatPage(page, server).open();
  await chat.send("Archive the old documents");
  const preview = page.getByRole("region", { name: "What this call would do" });
  await expect(preview).toBeVisible();
  // Between the event and the row of a request, the stored chat has its card without a preview.
  const withoutPreview = async (route: Route) => {
    const response = await route.fetch();
    const json = JSON.parse(await response.text(), (key, value) =>
      key === "preview" || key === "digest" ? undefined : value,
    );
    await route.fulfill({ response, json });
  };
  await page.route("**/api/chats/*", withoutPreview);
  await page.reload();
  await expect(chat.card("Archive documents")).toBeVisible();
  await expect(preview).toHaveCount(0);
  await page.unroute("**/api/chats/*", withoutPreview);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await expect(preview).toContainText("Rental agreement 2019.pdf");
});

test("the demo has a second person, without whom a large transfer does not run", async ({
  page,
  ownServer: server,
}) => {
  const chat = await new ChatPage(page, server).open();
  await chat.send("Transfer 5000 euros to the landlord");
  const id = new URLSearchParams(chat.query).get("chat");
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(page.getByText("1 approval is missing.")).toBeVisible();
  await page.getByRole("button", { name: "Continue as colleague" }).click();
  await page.goto(`${server.url}/inbox`);
  await page.getByRole("link", { name: /Transfer money/ }).click();
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(page.getByText("— approved")).toBeVisible();
  await page.getByRole("button", { name: "Continue as local" }).click();
  await page.goto(`${server.url}/?chat=${id}`);
  await expect(page.getByText("the landlord has the money")).toBeVisible();
});

test("another person of the demo is one in every tab of the browser", async ({
  page,
  ownServer: server,
}) => {
  const chat = await new ChatPage(page, server).open();
  const otherTab = await page.context().newPage();
  await otherTab.goto(`${server.url}/${chat.query}`);
  await expect(otherTab.getByText("Signed in as local")).toBeVisible();
  await page.getByRole("button", { name: "Continue as colleague" }).click();
  await expect(otherTab.getByText("Signed in as colleague")).toBeVisible();
  await expect(otherTab.getByRole("button", { name: "Continue as local" })).toBeVisible();
});
