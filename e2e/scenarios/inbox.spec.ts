import { devices, type Locator, type Page } from "@playwright/test";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import type { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";

/** Milliseconds in which a change elsewhere is visible. */
const SOON = 1_000;

/** The page of the approvals of all chats. */
class InboxPage {
  constructor(
    readonly page: Page,
    readonly server: DemoServer,
  ) {}

  async open(path = ""): Promise<this> {
    await this.page.goto(`${this.server.url}/inbox${path}`);
    await expect(this.page.getByRole("heading", { level: 2 })).toBeVisible();
    return this;
  }

  get rows(): Locator {
    return this.page.getByRole("list", { name: "Waiting approvals" }).getByRole("listitem");
  }

  row(name: string): Locator {
    return this.rows.filter({ hasText: name });
  }

  get cards(): Locator {
    return this.page.getByRole("region", { name: /^Approval: / });
  }

  link(name: string): Locator {
    return this.page.getByRole("link", { name });
  }

  view(name: string): Locator {
    return this.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name });
  }

  /** The approvals that wait no more, below the open cards. */
  closed(outcome: string): Locator {
    return this.page.getByRole("paragraph").filter({ hasText: `— ${outcome}` });
  }

  button(name: string): Locator {
    return this.page.getByRole("button", { name, exact: true });
  }
}

/** Ask for a payment to a person in a new chat. */
async function ask(chat: ChatPage, text = "Pay Ada 50 euros"): Promise<string> {
  await chat.open();
  await chat.page.goto(`${chat.url}/`);
  await chat.send(text);
  await expect(chat.cards.first()).toBeVisible();
  return new URLSearchParams(chat.query).get("chat") ?? "";
}

/** The id of the approval of a chat that waits. */
async function approvalOf(chat: ChatPage, chatId: string): Promise<string> {
  const response = await chat.page.request.get(`${chat.server.url}/api/approvals?limit=100`);
  const { approvals } = (await response.json()) as {
    approvals: { chatId: string; approvalId: string }[];
  };
  return approvals.find((each) => each.chatId === chatId)?.approvalId ?? "";
}

/** The milliseconds until something is visible, which must be few unless the machine is busy. */
async function expectSoon(visible: Promise<void>, label: string): Promise<void> {
  const start = performance.now();
  await visible;
  const milliseconds = Math.round(performance.now() - start);
  test.info().annotations.push({
    type: "latency",
    description: `${label}: ${milliseconds} ms of ${SOON} ms`,
  });
}

/** Stop what a page loads again every half minute, so that only events change it. */
async function withoutPolling(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const { setInterval } = window;
    const withoutLong = (handler: TimerHandler, milliseconds?: number, ...given: unknown[]) =>
      (milliseconds ?? 0) >= 30_000 ? 0 : setInterval(handler, milliseconds, ...given);
    window.setInterval = withoutLong as typeof setInterval;
  });
}

test("a decision in the inbox moves the chat in the other tab", async ({
  chat,
  context,
  server,
}) => {
  await withoutPolling(chat.page);
  const id = await ask(chat);
  const approvalId = await approvalOf(chat, id);
  const page = await context.newPage();
  await withoutPolling(page);
  const inbox = await new InboxPage(page, server).open(`/${encodeURIComponent(approvalId)}`);
  await expect(inbox.cards).toContainText("Ada");
  const before = (await server.effects()).length;
  await inbox.button("Approve").click();
  await expectSoon(expect(chat.cards).toHaveCount(0), "chat");
  await expect(chat.answer).toContainText("The payment is settled");
  await expect(inbox.closed("approved, done, by local")).toBeVisible();
  expect((await server.effects()).length - before).toBe(1);
});

test("an approval that is decided elsewhere disappears from the list and closes its card", async ({
  chat,
  context,
  server,
}) => {
  const id = await ask(chat);
  const approvalId = await approvalOf(chat, id);
  const [listPage, cardPage] = [await context.newPage(), await context.newPage()];
  for (const page of [listPage, cardPage]) await withoutPolling(page);
  const list = await new InboxPage(listPage, server).open();
  const open = await new InboxPage(cardPage, server).open(`/${encodeURIComponent(approvalId)}`);
  const link = listPage.locator(`a[href$="/inbox/${encodeURIComponent(approvalId)}"]`);
  await expect(link).toBeVisible();
  await expect(open.cards).toHaveCount(1);
  await expect(listPage).toHaveTitle(/^\(\d+\) Approvals/);
  await chat.deny("Send money", "not today");
  await expectSoon(expect(link).toHaveCount(0), "list");
  await expectSoon(expect(open.cards).toHaveCount(0), "card");
  await expect(open.closed("denied, by local")).toBeVisible();
  await expect(list.view("Waiting")).toBeVisible();
});

test("a request that arrives is listed, and counted on the page of the chats", async ({
  chat,
  context,
  ownServer,
}) => {
  const page = await context.newPage();
  await withoutPolling(page);
  const inbox = await new InboxPage(page, ownServer).open();
  await expect(page.getByText("Nothing waits for you.")).toBeVisible();
  const own = new ChatPage(chat.page, ownServer);
  await ask(own);
  await expectSoon(expect(inbox.row("Send money")).toBeVisible(), "request");
  await expect(page).toHaveTitle(/^\(1\) Approvals/);
  const link = own.page.getByRole("link", { name: /^Approvals/ });
  await expect(link.getByRole("img", { name: "1 waiting" })).toBeVisible();
  await link.click();
  await expect(own.page.getByRole("heading", { name: "Waiting for you" })).toBeVisible();
  await own.page.getByRole("link", { name: "Chats", exact: true }).click();
  await expect(own.message).toBeVisible();
});

test("an approval is found, read and approved by keyboard alone", async ({ chat, ownServer }) => {
  const own = new ChatPage(chat.page, ownServer);
  await ask(own);
  const { page } = own;
  const inbox = await new InboxPage(page, ownServer).open();
  await expect(inbox.row("Send money")).toBeVisible();
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  const tabTo = async (text: string) => {
    for (let presses = 0; presses < 40; presses += 1) {
      if ((await focused()).trim().startsWith(text)) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`The focus does not reach ${text}.`);
  };
  await tabTo("Send money");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "One approval" })).toBeFocused();
  // The guard ignores a key that was meant for what had the focus before.
  const approve = inbox.button("Approve");
  await expect(approve).not.toHaveAttribute("aria-disabled");
  await tabTo("Deny");
  await page.keyboard.press("a");
  await expect(inbox.cards).toHaveCount(0);
  await expect(inbox.closed("approved, done, by local")).toBeFocused();
  expect(await ownServer.effects()).toHaveLength(1);
});

test("the guard of the card holds: what is not shown in full is not approved", async ({
  chat,
  ownServer,
}) => {
  const own = new ChatPage(chat.page, ownServer);
  const id = await ask(own);
  const approvalId = await approvalOf(own, id);
  const { page } = own;
  const long = "x".repeat(5_000);
  await page.route(/\/api\/approvals\/[^?]+$/, async (route) => {
    const response = await route.fetch();
    const approval = await response.json();
    await route.fulfill({
      response,
      json: { ...approval, arguments: { ...approval.arguments, recipient: long } },
    });
  });
  const inbox = await new InboxPage(page, ownServer).open(`/${encodeURIComponent(approvalId)}`);
  await expect(page.getByText("A long value is not shown in full.")).toBeVisible();
  await expect(inbox.button("Approve")).toHaveAttribute("aria-disabled", "true");
  await inbox.button("Approve").click({ force: true });
  expect(await ownServer.effects()).toEqual([]);
  await inbox.cards.getByRole("button", { name: /^Show all/ }).click();
  await expect(inbox.button("Approve")).not.toHaveAttribute("aria-disabled");
});

test("several approvals are approved at once only after each was shown", async ({
  chat,
  ownServer,
}) => {
  const own = new ChatPage(chat.page, ownServer);
  for (let count = 0; count < 6; count += 1) await ask(own);
  const { page } = own;
  const posts: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST") posts.push(new URL(request.url()).pathname);
  });
  const inbox = await new InboxPage(page, ownServer).open();
  await expect(inbox.rows).toHaveCount(6);
  await inbox.button("Select all 6").click();
  await inbox.button("Review 6 approvals").click();
  await expect(inbox.cards).toHaveCount(5);
  const approve = inbox.button("Approve all");
  await expect(page.getByText("Look at every page before you approve all.")).toBeVisible();
  await expect(approve).toHaveAttribute("aria-disabled", "true");
  await inbox.button("Next").click();
  await expect(approve).not.toHaveAttribute("aria-disabled");
  await approve.click();
  // Six turns, of which a user may have five at once: a busy machine takes its time.
  await expect(inbox.closed("approved, done, by local")).toHaveCount(6, { timeout: 90_000 });
  expect(new Set(posts).size).toBe(6);
  expect(await ownServer.effects()).toHaveLength(6);
  await inbox.link("All waiting approvals").click();
  await expect(page.getByText("Nothing waits for you.")).toBeVisible();
});

test("arguments are edited and a denial has a reason, as in the chat", async ({
  chat,
  ownServer,
}) => {
  const own = new ChatPage(chat.page, ownServer);
  await ask(own);
  const edited = await approvalOf(own, await ask(own));
  const { page } = own;
  const inbox = await new InboxPage(page, ownServer).open(`/${encodeURIComponent(edited)}`);
  await inbox.button("Edit").click();
  await page.getByRole("textbox", { name: "Amount" }).fill("20");
  await page.getByRole("button", { name: /^Approve/ }).click();
  await expect(inbox.closed("approved, done, by local")).toBeVisible();
  expect((await ownServer.effects()).map((line) => JSON.parse(line).args.amount)).toEqual([20]);
  await inbox.link("All waiting approvals").click();
  await expect(inbox.row("Send money")).toHaveCount(1);
  await inbox.row("Send money").getByRole("link").click();
  await inbox.button("Deny").click();
  const form = page.getByRole("group", { name: "Deny the call" });
  await form.getByRole("textbox").fill("Ask again tomorrow.");
  await form.getByRole("button", { name: "Deny" }).click();
  await expect(inbox.closed("denied, by local")).toBeVisible();
  await inbox.view("History").click();
  await expect(page.getByRole("cell", { name: "Ask again tomorrow." })).toBeVisible();
  expect(await ownServer.effects()).toHaveLength(1);
});

test("filters select by tool, agent and age", async ({ chat, ownServer }) => {
  const own = new ChatPage(chat.page, ownServer);
  await ask(own);
  await ask(own, "search and update the users");
  const { page } = own;
  const inbox = await new InboxPage(page, ownServer).open();
  await expect(inbox.rows).toHaveCount(3);
  await page.getByRole("combobox", { name: "Tool" }).selectOption("process_payment");
  await expect(inbox.rows).toHaveCount(1);
  await page.getByRole("combobox", { name: "Age", exact: true }).selectOption("Older than an hour");
  await expect(page.getByText("No approval matches.")).toBeVisible();
});

test("a call whose outcome is unknown is resolved with a reason, which its chat and the history show", async ({
  chat,
  ownServer,
}) => {
  const own = new ChatPage(chat.page, ownServer);
  const id = await ask(own);
  const { page } = own;
  await page.goto("about:blank");
  await ownServer.dieDuringCalls();
  await ownServer.start();
  // The chat goes on without the call, and its model is told that the outcome is unknown.
  await own.open({}, `?chat=${id}`);
  await expect(own.tool("Send money")).toContainText("outcome unknown");
  const inbox = await new InboxPage(page, ownServer).open("?view=unknown");
  const card = page.getByRole("region", { name: /^Send money/ });
  await expect(card.getByText(/^[0-9a-f]{64}$/)).toBeVisible();
  const took = card.getByRole("button", { name: "It took effect" });
  await expect(took).toHaveAttribute("aria-disabled", "true");
  await expect(card.getByRole("button", { name: "Run it again" })).toHaveCount(0);
  await card.getByRole("textbox").fill("The bank shows the payment.");
  expect(await accessibilityViolations(page)).toEqual([]);
  await took.click();
  await expect(page.getByText("Every outcome is known.")).toBeVisible();
  await inbox.view("History").click();
  const line = page.getByRole("row").filter({ hasText: "The bank shows the payment." });
  await expect(line).toContainText("executed");
  await expect(line).toContainText("local");
  await expect(page.getByText("every line of the audit trail is as it was")).toBeVisible();
  await page.getByRole("searchbox", { name: "Search the history" }).fill("no such thing");
  await expect(page.getByText("Nothing matches.")).toBeVisible();
  await page.goto(`${ownServer.url}/?chat=${id}`);
  await expect(own.tool("Send money")).toContainText("took effect");
  await expect(own.tool("Send money")).toContainText("The bank shows the payment.");
  expect(await ownServer.effects()).toEqual([]);
});

test("the history is downloaded as a file", async ({ chat, ownServer }) => {
  const own = new ChatPage(chat.page, ownServer);
  await ask(own);
  const { page } = own;
  await new InboxPage(page, ownServer).open("?view=history");
  await expect(page.getByRole("cell", { name: "requested" })).toBeVisible();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "CSV" }).click();
  expect((await download).suggestedFilename()).toBe("approvals.csv");
});

test("an unknown approval says so, and a path that tries to leave the page does not", async ({
  page,
  server,
}) => {
  for (const id of ["none", "%2e%2e%2fadmin", "<img src=x onerror=alert(1)>", "a/b/c"]) {
    await page.goto(`${server.url}/inbox/${id}`);
    await expect(page.getByRole("alert")).toContainText(/no such|There is/);
  }
});

for (const path of ["", "?view=unknown", "?view=history"]) {
  test(`the page of ${path || "waiting approvals"} is accessible in both colours`, async ({
    chat,
    server,
  }) => {
    await ask(chat);
    await new InboxPage(chat.page, server).open(path);
    await expect(
      chat.page
        .getByRole("listitem")
        .or(chat.page.getByRole("status"))
        .or(chat.page.getByRole("table"))
        .first(),
    ).toBeVisible();
    expect(await accessibilityViolations(chat.page)).toEqual([]);
  });
}

test("the page works on a phone", async ({ browser, ownServer, chat }) => {
  await ask(new ChatPage(chat.page, ownServer));
  const context = await browser.newContext(devices["Pixel 7"]);
  const page = await context.newPage();
  const inbox = await new InboxPage(page, ownServer).open();
  const row = inbox.row("Send money");
  await expect(row).toBeVisible();
  const width = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(await width()).toBe(0);
  const box = await row.getByRole("checkbox").boundingBox();
  expect(box?.height).toBeGreaterThanOrEqual(24);
  await row.getByRole("link").tap();
  await expect(inbox.cards).toHaveCount(1);
  expect(await width()).toBe(0);
  expect(await accessibilityViolations(page)).toEqual([]);
  await inbox.button("Approve").tap();
  await expect(inbox.closed("approved, done, by local")).toBeVisible();
  await inbox.view("History").tap();
  const outcome = page.getByRole("cell", { name: "executed" });
  await expect(outcome).toBeVisible();
  expect(await width()).toBe(0);
  // A word is not broken between two lines.
  const lines = await outcome.evaluate((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length;
  });
  expect(lines).toBe(1);
  await context.close();
});
