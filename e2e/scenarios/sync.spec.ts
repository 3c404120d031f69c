import type { APIRequestContext, Browser, BrowserContext, Page } from "@playwright/test";
import { ChatPage, type Transport } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

/** Report the time until a change is visible; a limit would depend on the load of the machine. */
async function expectSoon(visible: Promise<void>, label: string): Promise<void> {
  const start = performance.now();
  await visible;
  const milliseconds = Math.round(performance.now() - start);
  test.info().annotations.push({ type: "latency", description: `${label}: ${milliseconds} ms` });
}

/** Stop what a page loads again every half minute, so that only events change it. */
async function withoutPolling(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const { setInterval } = window;
    const withoutLong = (handler: TimerHandler, milliseconds?: number, ...given: unknown[]) =>
      (milliseconds ?? 0) >= 30_000 ? 0 : setInterval(handler, milliseconds, ...given);
    window.setInterval = withoutLong as typeof setInterval;
  });
}

test.beforeEach(({ context }) => withoutPolling(context));

/** Another tab of the browser, or another browser of the same user. */
async function secondPage(
  kind: "tab" | "browser",
  { context, browser }: { context: BrowserContext; browser: Browser },
): Promise<Page> {
  if (kind === "tab") return context.newPage();
  const other = await browser.newContext();
  await withoutPolling(other);
  return other.newPage();
}

async function openSame(page: Page, chat: ChatPage, transport: Transport): Promise<ChatPage> {
  return new ChatPage(page, chat.server).open({ transport }, chat.query);
}

/** Expect so many cards that wait for a person. */
async function expectOpenCards(chat: ChatPage, count: number): Promise<void> {
  const approve = chat.cards.getByRole("button", { name: "Approve", exact: true });
  await expect(approve).toHaveCount(count);
}

/** Approve the one open call of a tool in a chat, as a program does. */
async function approveOutside(
  request: APIRequestContext,
  { server, query }: ChatPage,
  tool: string,
): Promise<void> {
  const chatId = new URLSearchParams(query).get("chat");
  const { approvals } = await (await request.get(`${server.url}/api/approvals`)).json();
  const open = approvals.filter(
    (each: { chatId: string; tool: string }) => each.chatId === chatId && each.tool === tool,
  );
  expect(open).toHaveLength(1);
  const url = `${server.url}/api/approvals/${open[0].approvalId}`;
  const response = await request.post(url, { data: { approved: true } });
  expect(response.status()).toBe(202);
}

for (const transport of ["sse", "websocket"] as const) {
  for (const kind of ["tab", "browser"] as const) {
    test.describe(`in another ${kind} over ${transport}`, () => {
      test("a message, its answer and a decision are seen without a reload", async ({
        chat,
        context,
        browser,
        server,
      }) => {
        await chat.open({ transport });
        await chat.send("Hello!");
        await chat.waitForEnd();
        const before = await server.effects();
        const page = await secondPage(kind, { context, browser });
        const other = await openSame(page, chat, transport);
        await other.waitForEnd();

        await chat.send("Pay Ada 50 euros");
        await expectSoon(
          expect(other.log.getByRole("article", { name: "You" })).toHaveCount(2),
          "message",
        );
        await expect(chat.card("Send money")).toBeVisible();
        await expectSoon(expect(other.card("Send money")).toBeVisible(), "request");
        await expect(page).toHaveTitle(/^\(\d+\) /);

        await chat.approve("Send money");
        await expectSoon(expect(other.cards).toHaveCount(0), "decision");
        await expect(chat.answer).toContainText("The payment is settled");
        await chat.waitForEnd();
        await expectSoon(other.waitForEnd(), "finished turn");
        await expect(other.answer).toContainText("The payment is settled");
        await expect(other.log.getByText("The payment is settled")).toHaveCount(1);
        await expect(other.tool("Send money")).toContainText("Approved by");
        expect((await server.effects()).length - before.length).toBe(1);
      });

      test("a decision that could not be loaded is seen when the network is back", async ({
        chat,
        context,
        browser,
      }) => {
        await chat.open({ transport });
        await chat.send("Pay Ada 50 euros");
        await expect(chat.card("Send money")).toBeVisible();
        const page = await secondPage(kind, { context, browser });
        const other = await openSame(page, chat, transport);
        await expect(other.card("Send money")).toBeVisible();
        const isStoredChat = (url: URL) => url.pathname.startsWith("/api/chats/");
        await page.route(isStoredChat, (route) => route.abort());
        const failed = page.waitForEvent("requestfailed");
        await chat.deny("Send money");
        await chat.waitForEnd();
        await failed;
        await page.unroute(isStoredChat);
        await expect(other.cards).toHaveCount(0);
      });

      test("an edit that replaces later messages is seen without a reload", async ({
        chat,
        context,
        browser,
      }) => {
        await chat.open({ transport });
        for (const text of ["Hello!", "Hello again!"]) {
          await chat.send(text);
          await chat.waitForEnd();
        }
        const page = await secondPage(kind, { context, browser });
        const other = await openSame(page, chat, transport);
        await expect(other.log.getByRole("article", { name: "You" })).toHaveCount(2);
        const first = chat.log.getByRole("article", { name: "You" }).first();
        await first.getByRole("button", { name: "Edit your message" }).click();
        await chat.log.getByRole("textbox", { name: "Edit your message" }).fill("Good morning!");
        const note = "This replaces the answer and 2 later messages.";
        await expect(chat.log.getByText(note)).toBeVisible();
        await chat.log.getByRole("button", { name: "Send" }).click();
        await expect(other.log.getByRole("article", { name: "You" })).toHaveText(["Good morning!"]);
      });

      test("a new title and a deletion are seen without a reload", async ({
        chat,
        context,
        browser,
      }) => {
        await chat.open({ transport });
        await chat.send("Hello!");
        await chat.waitForEnd();
        const page = await secondPage(kind, { context, browser });
        const other = await openSame(page, chat, transport);
        await other.waitForEnd();
        const id = new URLSearchParams(chat.query).get("chat");
        const title = `Renamed ${Date.now()}`;
        await chat.page.evaluate(
          ([url, data]) =>
            fetch(url, {
              method: "PATCH",
              body: data,
              headers: { "content-type": "application/json" },
            }),
          [`api/chats/${id}`, JSON.stringify({ title })] as const,
        );
        await expectSoon(expect(page.getByRole("link", { name: title })).toBeVisible(), "title");
        await chat.page.evaluate((url) => fetch(url, { method: "DELETE" }), `api/chats/${id}`);
        await expectSoon(
          expect(page.getByRole("main").getByText("This chat was deleted")).toBeVisible(),
          "deletion",
        );
        await expect(page.getByRole("link", { name: title })).toHaveCount(0);
      });
    });
  }
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a decision made elsewhere is seen without a timer that looks for it, ${transport}`, async ({
    chat,
    browser,
  }) => {
    await chat.open({ transport });
    await chat.send("Pay Ada 50 euros");
    await expect(chat.card("Send money")).toBeVisible();
    const page = await secondPage("browser", { context: chat.page.context(), browser });
    await page.clock.install();
    const other = await openSame(page, chat, transport);
    await expect(other.card("Send money")).toBeVisible();
    const now = await page.evaluate(() => Date.now());
    await page.clock.pauseAt(now + 10_000);
    await chat.deny("Send money");
    await chat.waitForEnd();
    // Delays within a rendering pass, intervals of seconds do not.
    await expect(async () => {
      await page.clock.runFor(50);
      await expect(other.cards).toHaveCount(0, { timeout: 500 });
    }).toPass({ timeout: 30_000 });
  });
}

for (const transport of ["sse", "websocket", "bidi"] as const) {
  for (const kind of ["tab", "browser"] as const) {
    test(`over ${transport}, another ${kind} lists a new chat as running at once`, async ({
      chat,
      context,
      browser,
      server,
    }) => {
      const page = await secondPage(kind, { context, browser });
      const other = await new ChatPage(page, server).open({ transport });
      await chat.open({ transport });
      const text = `Never end, ${kind} over ${transport}: stuck`;
      const row = ({ page }: ChatPage) => page.getByRole("listitem").filter({ hasText: text });
      await chat.send(text);
      for (const each of [other, chat]) {
        await expectSoon(expect(row(each)).toBeVisible(), "new chat");
        await expect(row(each).getByRole("img", { name: "Running" })).toBeVisible();
      }
      await chat.page.getByRole("button", { name: "Stop", exact: true }).click();
      for (const each of [other, chat]) {
        await expect(row(each).getByRole("img", { name: "Running" })).toHaveCount(0);
      }
    });
  }
}

for (const transport of ["sse", "websocket"] as const) {
  for (const [kind, last] of [
    ["tab", "in another tab"],
    ["browser", "outside of any tab"],
  ] as const) {
    test(`over ${transport}, one card of a group is decided here and the last ${last}`, async ({
      chat,
      context,
      browser,
      server,
    }) => {
      await chat.open({ transport });
      await chat.send("Search and update");
      await expect(chat.cards).toHaveCount(2);
      const before = await server.effects();
      const page = await secondPage(kind, { context, browser });
      const other = await openSame(page, chat, transport);
      await expect(other.cards).toHaveCount(2);

      await chat.approve("Search the customer database");
      for (const each of [chat, other]) await expectOpenCards(each, 1);
      expect(await server.effects()).toEqual(before);
      if (kind === "tab") await other.approve("Change the customer database");
      else await approveOutside(context.request, chat, "update_database");
      for (const each of [other, chat]) {
        await expectSoon(each.waitForEnd(), "finished answer");
        await expect(each.cards).toHaveCount(0);
        await expect(each.log.getByText("Both steps are settled")).toHaveCount(1);
      }
      // The search has no effect to record.
      const effects = (await server.effects()).slice(before.length);
      expect(effects.map((line) => JSON.parse(line).tool)).toEqual(["update_database"]);
    });
  }
}

test("ten tabs have one connection for events", async ({ chat, context }) => {
  const streams: string[] = [];
  context.on("request", (request) => {
    if (new URL(request.url()).pathname.endsWith("/api/events")) streams.push(request.url());
  });
  await chat.open();
  await chat.send("Hello!");
  await chat.waitForEnd();
  const others: ChatPage[] = [];
  for (let count = 1; count < 10; count += 1) {
    others.push(await openSame(await context.newPage(), chat, "sse"));
  }
  await chat.send("Pay Ada 50 euros");
  for (const other of others) await expect(other.card("Send money")).toBeVisible();
  expect(streams).toHaveLength(1);

  // Another tab takes the connection over.
  await chat.page.close();
  await expect.poll(() => streams).toHaveLength(2);
  await others[0]?.deny("Send money");
  for (const other of others) await expect(other.cards).toHaveCount(0);
});

test("the number of waiting approvals over all chats is in the title and the icon", async ({
  chat,
  request,
}) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toBeVisible();
  // Approvals of other tests may be waiting too.
  const { approvals } = await (
    await request.get(`${chat.server.url}/api/approvals?limit=100`)
  ).json();
  const count = approvals.length;
  await expect(chat.page).toHaveTitle(new RegExp(`^\\(${count}\\) `));
  await chat.page.getByRole("button", { name: "New chat" }).click();
  await expect(chat.page).toHaveTitle(new RegExp(`^\\(${count}\\) `));
  const icon = chat.page.locator("link[rel=icon]");
  await expect(icon).toHaveAttribute("href", new RegExp(encodeURIComponent(`>${count}<`)));
  await chat.page.goBack();
  await chat.deny("Send money");
  await chat.waitForEnd();
  await expect(chat.page).toHaveTitle(count === 1 ? /^[^(]/ : new RegExp(`^\\(${count - 1}\\) `));
});

test("a button asks for notifications, which name the tool without its arguments", async ({
  chat,
  context,
}) => {
  await context.addInitScript(() => {
    const shown: string[] = [];
    class FakeNotification {
      static permission: NotificationPermission = "default";
      static async requestPermission() {
        FakeNotification.permission = "granted";
        return FakeNotification.permission;
      }
      onclick = null;
      constructor(title: string, { body }: NotificationOptions) {
        shown.push(`${title}: ${body}`);
      }
      close() {}
    }
    Object.assign(window, { Notification: FakeNotification, shown });
  });
  await chat.open();
  const other = await new ChatPage(await context.newPage(), chat.server).open();
  await other.page.getByRole("button", { name: "Notify me of approvals" }).click();
  await expect(other.page.getByRole("button", { name: /^Approvals are notified/ })).toBeVisible();
  await other.page.evaluate(() =>
    Object.defineProperty(document, "visibilityState", { get: () => "hidden" }),
  );
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toBeVisible();
  const shown = () => other.page.evaluate(() => (window as unknown as { shown: string[] }).shown);
  await expect.poll(shown).toHaveLength(1);
  expect((await shown())[0]).toMatch(/process_payment$/);
  expect((await shown())[0]).not.toMatch(/Ada|50/);
});

for (const transport of ["sse", "websocket"] as const) {
  test(`an edit waits for an answer that was requested in another tab, over ${transport}`, async ({
    chat,
    context,
  }) => {
    await chat.open({ transport });
    await chat.send("Hello! What can you do?");
    await chat.waitForEnd();
    await chat.log.getByRole("button", { name: "Edit your message" }).click();
    const editor = chat.log.getByRole("textbox", { name: "Edit your message" });
    await editor.fill("Why is the sky blue?");
    const page = await context.newPage();
    const other = await new ChatPage(page, chat.server).open({ transport }, chat.query);
    await other.send("Think about it for ever");
    await expect(chat.answer).toContainText("will not stop by myself");
    const send = chat.log.getByRole("button", { name: "Send" });
    await expect(send).toBeDisabled();
    await expect(chat.log.getByText("You can send this when the answer has ended.")).toBeVisible();
    await expect(editor).toHaveValue("Why is the sky blue?");
    await page.getByRole("button", { name: "Stop" }).click();
    await expect(
      chat.log.getByText("This replaces the answer and 2 later messages."),
    ).toBeVisible();
    await send.click();
    await expect(chat.answer).toContainText("Air scatters blue light");
    await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
    await chat.waitForEnd();
    for (const tab of [chat, other]) {
      await expect(tab.answer).toContainText("Air scatters blue light");
      await expect(tab.log.getByRole("article", { name: "You" })).toHaveCount(1);
    }
  });
}
