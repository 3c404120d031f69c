import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";
import { clickOnArrival } from "./reflexes.ts";

const LONG = `${"Dear Ada, ".repeat(120)}transfer everything`;

type Payment = readonly [recipient: string, amount: number];

function payments(match: string, ...all: Payment[]) {
  const calls = all.map(([recipient, amount]) => ({
    parts: [{ call: { name: "process_payment", args: { recipient, amount, currency: "EUR" } } }],
  }));
  return { match, responses: [...calls, { parts: [{ text: "The payment is settled." }] }] };
}

const SCRIPT = {
  scenarios: [
    payments("long", [LONG, 5]),
    payments("look-alike", ["pаypal\u202e5\u0336", 1_500_000]),
    payments("plain", ["Ada", 50]),
    payments("several", ["Bob", 10], ["Bob", 20], ["Eve", 30]),
    payments("again", ["Bob", 40]),
  ],
};

test.describe("an approval card", () => {
  let folder: string;
  let cardServer: DemoServer;

  test.beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sluicegate-cards-"));
    const script = join(folder, "script.json");
    writeFileSync(script, JSON.stringify(SCRIPT));
    cardServer = await DemoServer.start("--model-script", script);
  });

  test.afterAll(async () => {
    await cardServer.close();
    rmSync(folder, { recursive: true });
  });

  test("a long value is opened before it can be approved", async ({ chat: { page } }) => {
    const chat = await new ChatPage(page, cardServer).open();
    await chat.send("a long text");
    const card = chat.card("Send money");
    await expect(card).toContainText("A long value is not shown in full.");
    for (const name of ["Approve", "Edit"]) {
      await expect(card.getByRole("button", { name, exact: true })).toBeDisabled();
    }
    await expect(card).not.toContainText("transfer everything");
    expect(await accessibilityViolations(page)).toEqual([]);
    await card.focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect(card).toContainText("transfer everything");
    await chat.approve("Send money");
    await expect(chat.answer).toContainText("The payment is settled.");
  });

  test("misleading characters are named on the card and in its form", async ({
    chat: { page },
  }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    const chat = await new ChatPage(page, cardServer).open();
    await chat.send("a look-alike");
    const card = chat.card("Send money");
    const findings = [
      "Contains Cyrillic ‘а’ (U+0430) among Latin letters.",
      "U+202E (right-to-left override)",
      "combining marks that obscure a character: U+0336",
    ];
    for (const finding of findings) await expect(card).toContainText(finding);
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await card.getByRole("button", { name: "Edit" }).click();
    for (const finding of findings) await expect(card).toContainText(finding);
  });

  for (const transport of ["sse", "websocket"] as const) {
    test(`an amount is typed in one form, and that amount is paid, ${transport}`, async ({
      chat: { page },
    }) => {
      const chat = await new ChatPage(page, cardServer).open({ transport });
      const before = await cardServer.effects();
      await chat.send("a plain payment");
      const card = chat.card("Send money");
      await card.getByRole("button", { name: "Edit" }).click();
      const amount = card.getByRole("textbox", { name: "amount" });
      const approve = card.getByRole("button", { name: "Approve with changes" });
      await amount.fill("1,500");
      await approve.click();
      await expect(card).toContainText("“1,500” can be 1500 or 1.5. Type one of them.");
      await amount.fill("0x10");
      await approve.click();
      await expect(card).toContainText("Type a number in digits");
      expect(await cardServer.effects()).toEqual(before);
      await amount.fill("1.5");
      await approve.click();
      await expect(chat.answer).toContainText("The payment is settled.");
      const effects = (await cardServer.effects()).slice(before.length);
      expect(effects.map((effect) => JSON.parse(effect).args)).toEqual([
        { recipient: "Ada", amount: 1.5, currency: "EUR" },
      ]);
    });
  }

  for (const transport of ["sse", "websocket"] as const) {
    test(`a grant says what it covers and is confirmed, a double click makes none, ${transport}`, async ({
      chat: { page },
    }) => {
      const chat = await new ChatPage(page, cardServer).open({ transport });
      const posts: (string | null)[] = [];
      page.on("request", (request) => {
        if (request.url().includes("/api/approvals/")) posts.push(request.postData());
      });
      const before = await cardServer.effects();
      await chat.send("a plain payment");
      const card = chat.card("Send money");
      const ask = card.getByRole("button", { name: "Do not ask again…" });
      await expect(ask).toBeEnabled();
      await ask.dblclick();
      await card.getByRole("checkbox", { name: "amount" }).uncheck();
      await card.getByRole("combobox", { name: "Ask again after" }).selectOption("1 hour");
      const name = "Approve and do not ask again";
      const clicked = await clickOnArrival(page, { card: "Ada", button: name, milliseconds: 300 });
      await card.getByRole("button", { name: "Continue" }).click();
      await clicked();
      const table = card.getByRole("table", { name: "What you allow" });
      await expect(table.getByRole("row")).toHaveText([
        "Toolprocess_payment",
        "Called bysluicegate_demo",
        "Withthe same recipient: Adathe same currency: EURany amount",
        "Wherethis chat",
        /^Until.*\d\d:\d\d \(1 hour\)$/,
      ]);
      expect(await accessibilityViolations(page)).toEqual([]);
      expect(posts).toEqual([]);
      expect(await cardServer.effects()).toEqual(before);
      await card.getByRole("button", { name }).click();
      await expect(chat.answer).toContainText("The payment is settled.");
      const remember = { where: ["recipient", "currency"], ttl: 3600 };
      expect(posts.map((body) => JSON.parse(body ?? ""))).toEqual([{ approved: true, remember }]);
    });
  }

  test("payments to the same person are allowed, until the person ends it", async ({
    chat: { page },
  }) => {
    const chat = await new ChatPage(page, cardServer).open();
    await chat.send("several payments");
    const card = chat.card("Send money");
    await card.getByRole("button", { name: "Do not ask again…" }).click();
    await card.getByRole("checkbox", { name: "amount" }).uncheck();
    await card.getByRole("checkbox", { name: "currency" }).uncheck();
    await expect(card).toContainText("For 24 hours, sluicegate_demo can call process_payment");
    await card.getByRole("button", { name: "Continue" }).click();
    await card.getByRole("button", { name: "Approve and do not ask again" }).click();
    // The second payment to Bob runs without a card; one to somebody else does not.
    await expect(card).toContainText("Eve");
    await chat.deny("Send money");
    await expect(chat.answer).toContainText("The payment is settled.");
    const effects = (await cardServer.effects()).map((effect) => JSON.parse(effect).args);
    const paid = effects.filter(({ recipient }) => ["Bob", "Eve"].includes(recipient));
    expect(paid.map(({ recipient, amount }) => [recipient, amount])).toEqual([
      ["Bob", 10],
      ["Bob", 20],
    ]);

    await page.getByRole("button", { name: "Rename or delete: several payments" }).click();
    const grants = page.getByRole("region", { name: "Always allowed" });
    await expect(grants.getByRole("listitem")).toContainText(["recipient"]);
    await expect(grants).toContainText("Bob");
    await grants.getByRole("button", { name: /^Ask again: process_payment/ }).click();
    await expect(grants).toHaveCount(0);
    await page.getByRole("button", { name: "Close" }).click();
    await chat.send("pay Bob again");
    await expect(card).toContainText("40");
  });
});

test("the button to the newest message covers nothing of a card", async ({ chat }) => {
  await chat.page.setViewportSize({ width: 390, height: 600 });
  await chat.open();
  await chat.send("Order paper for the office");
  await expect(chat.card("Order supplies")).toBeVisible();
  await chat.log.evaluate((thread) => {
    thread.scrollTop = 0;
  });
  const button = chat.page.getByRole("button", { name: "Go to the newest message" });
  await expect(button).toBeVisible();
  const [thread, below] = [await chat.log.boundingBox(), await button.boundingBox()];
  expect(below?.y).toBeGreaterThanOrEqual((thread?.y ?? 0) + (thread?.height ?? 0));
  await button.click();
  await expect(button).toBeHidden();
  await chat.deny("Order supplies");
});

test("a card shows its keys also while the focus is elsewhere", async ({ chat }) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money").getByText(/^Keys/)).toBeVisible();
  await expect(chat.message).toBeFocused();
  await chat.deny("Send money");
});
