import type { Browser, BrowserContext, Page } from "@playwright/test";
import { ChatPage, type Transport } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

/** Report the time until a change is visible; a limit would depend on the load of the machine. */
async function expectSoon(visible: Promise<void>, label: string): Promise<void> {
  const start = performance.now();
  await visible;
  const milliseconds = Math.round(performance.now() - start);
  test.info().annotations.push({ type: "latency", description: `${label}: ${milliseconds} ms` });
}

/** Another tab of the browser, or another browser of the same user. */
async function secondPage(
  kind: "tab" | "browser",
  { context, browser }: { context: BrowserContext; browser: Browser },
): Promise<Page> {
  const other = kind === "tab" ? context : await browser.newContext();
  return other.newPage();
}

async function openSame(page: Page, chat: ChatPage, transport: Transport): Promise<ChatPage> {
  return new ChatPage(page, chat.server).open({ transport }, chat.query);
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
        expect((await server.effects()).length - before.length).toBe(1);
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
    await page.clock.pauseAt(now + 1_000);
    await chat.deny("Send money");
    await chat.waitForEnd();
    // Delays within a rendering pass, intervals of seconds do not.
    await expect(async () => {
      await page.clock.runFor(50);
      await expect(other.cards).toHaveCount(0, { timeout: 500 });
    }).toPass({ timeout: 30_000 });
  });
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
}) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toBeVisible();
  await expect(chat.page).toHaveTitle(/^\(\d+\) /);
  const count = Number(/\d+/.exec(await chat.page.title())?.[0]);
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
