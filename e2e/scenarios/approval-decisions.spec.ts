import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator } from "@playwright/test";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";
import { clickOnArrival } from "./reflexes.ts";

const DECISIONS = "**/api/approvals/**";
const payment = (recipient: string, amount: number) => ({
  call: { name: "process_payment", args: { recipient, amount, currency: "EUR" } },
});

function parallel(count: number) {
  return Array.from({ length: count }, (_, index) => payment(`Payee ${index + 1}`, index + 1));
}

/** The demo agent, whose report is not ready before the server is killed. */
const SLOW_AGENT = `
import os

from sluicegate.demo.agent import build_agent

root_agent = build_agent(os.environ, report_seconds=600)
`;

const DONE = { parts: [{ text: "That is all." }] };
const SCRIPT = {
  scenarios: [
    { match: "thirty", responses: [{ parts: parallel(30) }, DONE] },
    { match: "forty", responses: [{ parts: parallel(40) }, DONE] },
    {
      match: "endless",
      responses: [{ parts: [payment("Ada", 5)] }, { parts: [{ text: "So " }], hang: true }],
    },
    { match: "three", responses: [{ parts: parallel(3) }, DONE] },
    {
      match: "reserved",
      responses: [
        JSON.parse(
          '{"parts": [{"call": {"name": "process_payment", "args": {"recipient": "Ada", "amount": 5, "__proto__": {"amount": 500}}}}]}',
        ),
        DONE,
      ],
    },
  ],
};

test.describe("decisions", () => {
  let folder: string;
  let scripted: DemoServer;
  let raised: DemoServer;

  test.beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sluicegate-decisions-"));
    const script = join(folder, "script.json");
    writeFileSync(script, JSON.stringify(SCRIPT));
    scripted = await DemoServer.start("--model-script", script);
    raised = await DemoServer.startWith(
      { SLUICEGATE_MAX_REQUESTS_PER_TURN: "40", SLUICEGATE_MAX_REQUESTS_PER_EXCHANGE: "40" },
      "--model-script",
      script,
    );
  });

  test.afterAll(async () => {
    await scripted.close();
    await raised.close();
    rmSync(folder, { recursive: true });
  });

  for (const transport of ["sse", "websocket"] as const) {
    test.describe(`over ${transport}`, () => {
      for (const milliseconds of [150, 300]) {
        test(`a second click after ${milliseconds} ms does not approve the next payment in its place`, async ({
          chat,
          server,
        }) => {
          await chat.open({ transport });
          const before = await server.effects();
          await chat.send("Pay my five invoices one after the other");
          const card = chat.card("Send money");
          await expect(card).toContainText("Print Shop");
          const clicked = await clickOnArrival(chat.page, {
            card: "Flower Shop",
            button: "Approve",
            milliseconds,
          });
          await chat.approve("Send money");
          await clicked();
          await expect(card).toContainText("Flower Shop");
          await expect(card).toContainText("waits for you");
          expect((await server.effects()).length - before.length).toBe(1);
          await chat.deny("Send money");
        });
      }

      test("a page that is reloaded during the turn shows who approved", async ({ page }) => {
        const chat = await new ChatPage(page, scripted).open({ transport });
        await chat.send("endless");
        await chat.approve("Send money");
        const row = chat.tool("Send money");
        await expect(chat.answer).toContainText("So");
        await expect(row).toContainText(/Approved by local, (?:\d+ \w+ \d{4}, )?\d\d:\d\d/);
        await page.reload();
        await expect(chat.answer).toContainText("So");
        await expect(row).toContainText(/Approved by local, (?:\d+ \w+ \d{4}, )?\d\d:\d\d/);
        await page.getByRole("button", { name: "Stop" }).click();
        await chat.waitForEnd();
        await expect(row).toContainText(/Approved by local, (?:\d+ \w+ \d{4}, )?\d\d:\d\d/);
      });

      test("neither an edit nor another answer is offered before a decided turn goes on", async ({
        chat,
      }) => {
        await chat.open({ transport });
        await chat.send("Pay Ada 50 euros");
        await expect(chat.card("Send money")).toBeVisible();
        await expect(chat.log.getByRole("button", { name: "Edit your message" })).toBeVisible();
        let load = () => {};
        const isLoading = new Promise<void>((resolve) => {
          load = resolve;
        });
        await chat.page.route(/\/api\/chats\/[^/?]+$/, async (route) => {
          await isLoading;
          await route.continue();
        });
        await chat.approve("Send money");
        await expect(chat.tool("Send money")).toContainText("approved, running");
        for (const name of ["Edit your message", /^Answer again/]) {
          await expect(chat.log.getByRole("button", { name })).toHaveCount(0);
        }
        load();
        await expect(chat.answer).toContainText("The payment is settled");
        await chat.waitForEnd();
      });

      test("the second click of a double click does not approve another card of the group", async ({
        chat,
        server,
      }) => {
        const { page } = chat;
        await page.clock.install();
        await chat.open({ transport });
        const before = await server.effects();
        await chat.send("Search and update the database at the same time");
        const search = chat.card("Search the customer database");
        const change = chat.card("Change the customer database");
        const approveOf = (card: Locator) =>
          card.getByRole("button", { name: "Approve", exact: true });
        await expect(approveOf(search)).toBeEnabled();
        await expect(approveOf(change)).toBeEnabled();
        await approveOf(search).hover();
        const pressed = await approveOf(search).boundingBox();
        await page.mouse.down();
        await page.mouse.up();
        await expect(search).toContainText("approved");
        // From here on, no time passes: the other card moves under the pointer, which is pressed.
        await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 10_000);
        const moved = await approveOf(change).boundingBox();
        await change.evaluate(
          (element, pixels) => {
            element.style.position = "relative";
            element.style.top = `${-pixels}px`;
          },
          (moved?.y ?? 0) - (pressed?.y ?? 0),
        );
        await page.mouse.down({ clickCount: 2 });
        await page.mouse.up({ clickCount: 2 });
        await expect(change).toContainText("waits for you");
        await page.clock.resume();
        await chat.deny("Change the customer database");
        await expect(chat.answer).toContainText("Both steps are settled.");
        expect(await server.effects()).toEqual(before);
      });

      for (const [problem, status, failure] of [
        ["too many requests", 429, "not sent"],
        ["a lost approval", 404, "not sent"],
        ["refused edits", 400, "not sent"],
        // A connection may fail after the server has read the request.
        ["no network", 0, "not confirmed"],
      ] as const) {
        test(`a card shows that its approval was ${failure}, and sends it again: ${problem}`, async ({
          chat,
          server,
        }) => {
          await chat.open({ transport });
          const before = await server.effects();
          await chat.send("Pay Ada 50 euros");
          const card = chat.card("Send money");
          await chat.page.route(DECISIONS, (route) =>
            status === 0 ? route.abort() : route.fulfill({ status, body: "Not now, says a test." }),
          );
          await card.getByRole("button", { name: "Edit" }).click();
          const amount = card.getByRole("textbox", { name: "amount" });
          await amount.fill("40");
          await card.getByRole("button", { name: "Approve with changes" }).click();
          await expect(card).toContainText(`Your approval was ${failure}`);
          await expect(card).toContainText(
            status === 0 ? "The server cannot be reached" : "Not now, says a test.",
          );
          await expect(card.getByText(failure, { exact: true })).toBeVisible();
          await expect(chat.log).not.toContainText("running");
          await expect(amount).toHaveValue("40");
          expect(await server.effects()).toEqual(before);
          await chat.page.unroute(DECISIONS);
          await card.getByRole("button", { name: "Retry" }).click();
          await expect(chat.answer).toContainText("The payment is settled");
          const effects = (await server.effects()).slice(before.length);
          expect(effects.map((effect) => JSON.parse(effect).args.amount)).toEqual([40]);
        });
      }

      test("an approval whose response never comes can be sent again, and pays once", async ({
        chat,
        server,
      }) => {
        await chat.page.clock.install();
        // Without events, only the response says that the server has the approval.
        await chat.page.route("**/api/events*", (route) => route.abort());
        await chat.open({ transport });
        const before = await server.effects();
        await chat.send("Pay Ada 50 euros");
        const card = chat.card("Send money");
        const isRecorded = new Promise<void>((resolve) => {
          void chat.page.route(DECISIONS, async (route) => {
            await route.fetch();
            resolve();
          });
        });
        await chat.approve("Send money");
        await expect(card).toContainText("being sent");
        await isRecorded;
        await chat.page.clock.fastForward(20_000);
        await expect(card).toContainText("Your approval was not confirmed");
        await expect(card).toContainText("The server did not answer in time. Try again.");
        await chat.page.unroute(DECISIONS);
        await card.getByRole("button", { name: "Retry" }).click();
        await expect(chat.answer).toContainText("The payment is settled");
        expect((await server.effects()).length - before.length).toBe(1);
      });

      test("an answer of a group is final, also before a reload", async ({ chat, server }) => {
        await chat.open({ transport });
        const before = await server.effects();
        await chat.send("Search and update the database at the same time");
        await chat.approve("Change the customer database");
        await expect(chat.card("Change the customer database")).toContainText("approved");
        await chat.page.reload();
        await expect(chat.tool("Change the customer database")).toContainText(
          "approved, waits for your other decisions",
        );
        await expect(chat.cards).toHaveCount(1);
        await chat.approve("Search the customer database");
        await expect(chat.answer).toContainText("Both steps are settled.");
        await expect(chat.tool("Change the customer database")).toContainText("done");
        expect((await server.effects()).length - before.length).toBe(1);
      });

      test("two tabs answer one card each, and the turn continues", async ({
        chat,
        context,
        server,
      }) => {
        await chat.open({ transport });
        const before = await server.effects();
        await chat.send("Search and update the database at the same time");
        await expect(chat.cards).toHaveCount(2);
        const other = new ChatPage(await context.newPage(), server);
        await other.open({ transport }, chat.query);
        await expect(other.cards).toHaveCount(2);
        await chat.approve("Change the customer database");
        await expect(chat.card("Change the customer database")).toContainText("approved");
        await other.approve("Search the customer database");
        await expect(other.answer).toContainText("Both steps are settled.");
        expect((await server.effects()).length - before.length).toBe(1);
        // The first tab is looked at again.
        await chat.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
        await expect(chat.answer).toContainText("Both steps are settled.");
      });

      test("approving all keeps an open form, and waits for it", async ({ chat, server }) => {
        await chat.open({ transport });
        const before = await server.effects();
        await chat.send("Search and update the database at the same time");
        const card = chat.card("Change the customer database");
        await card.getByRole("button", { name: "Edit" }).click();
        const rows = card.getByRole("textbox", { name: "rows" });
        await rows.fill("7");
        const approveAll = chat.log.getByRole("button", { name: "Approve all" });
        await expect(approveAll).toBeDisabled();
        await expect(chat.log).toContainText("A form is open. Finish or cancel it");
        await approveAll.click({ force: true });
        await expect(rows).toHaveValue("7");
        await card.getByRole("button", { name: "Approve with changes" }).click();
        await chat.log.getByRole("button", { name: /^Approve all/ }).click();
        await expect(chat.answer).toContainText("Both steps are settled.");
        const effects = (await server.effects()).slice(before.length);
        expect(effects.map((effect) => JSON.parse(effect).args.rows)).toEqual([7]);
      });

      test("a call with a reserved argument name is neither shown nor run", async ({
        chat: { page },
      }) => {
        const chat = await new ChatPage(page, scripted).open({ transport });
        const before = await scripted.effects();
        await chat.send("reserved names");
        await expect(chat.answer).toContainText("That is all.");
        await expect(chat.cards).toHaveCount(0);
        expect(await scripted.effects()).toEqual(before);
      });

      test("a card without time left has no buttons", async ({ chat: { page } }) => {
        const server = await DemoServer.startWith({ SLUICEGATE_APPROVAL_TTL: "4" });
        try {
          const chat = await new ChatPage(page, server).open({ transport });
          await chat.send("Pay Ada 50 euros");
          const card = chat.card("Send money");
          await expect(card).toContainText("The time to decide is over. The call does not run.");
          await expect(card).toContainText("expired");
          await expect(card.getByRole("button")).toHaveCount(0);
          await card.focus();
          for (const key of ["a", "d", "e", "Enter"]) await page.keyboard.press(key);
          await expect(card.getByRole("textbox")).toHaveCount(0);
          expect(await accessibilityViolations(page)).toEqual([]);
          expect(await server.effects()).toEqual([]);
        } finally {
          await server.close();
        }
      });

      test("an unknown outcome is not a failure", async ({ chat: { page } }) => {
        const agent = join(folder, "slow_agent.py");
        writeFileSync(agent, SLOW_AGENT);
        const server = await DemoServer.serve(`${agent}:root_agent`);
        try {
          const chat = await new ChatPage(page, server).open({ transport });
          await chat.send("Compile a report");
          await chat.approve("Compile a report");
          await expect(chat.tool("Compile a report")).toContainText("approved, running");
          // The page knows of the decision before the call runs.
          await expect.poll(() => server.effects()).toHaveLength(1);
          await server.kill();
          await server.start();
          await page.reload();
          const row = chat.tool("Compile a report");
          await expect(row).toContainText("outcome unknown");
          await expect(row).not.toContainText("failed");
          await expect(row).toContainText("Check whether it took effect.");
          expect(await server.effects()).toHaveLength(1);
          expect(await accessibilityViolations(page)).toEqual([]);
        } finally {
          await server.close();
        }
      });

      for (const release of ["progressive", "deferred"] as const) {
        test(`of thirty calls ten are asked for, and no other has a form, ${release}`, async ({
          chat: { page },
        }) => {
          const chat = await new ChatPage(page, scripted).open({ transport, release });
          const before = await scripted.effects();
          await chat.send("thirty payments");
          await expect(chat.log.getByRole("group", { name: "10 approvals" })).toBeVisible();
          await expect(page.getByRole("button", { name: "Stop" })).toHaveCount(0);
          await expect(chat.log.getByRole("region", { name: /^Question/ })).toHaveCount(0);
          await expect(chat.log.getByRole("button", { name: "Answer", exact: true })).toHaveCount(
            0,
          );
          const approveAll = chat.log.getByRole("button", { name: "Approve all" });
          await expect(approveAll).toBeDisabled();
          await chat.log.getByRole("button", { name: "Next" }).click();
          await expect(chat.log).toContainText("Payee 10");
          await approveAll.click();
          await expect(chat.answer).toContainText("That is all.");
          expect((await scripted.effects()).length - before.length).toBe(10);
          await expect(chat.log.getByText("not run", { exact: true })).toHaveCount(20);
        });
      }
    });
  }

  test("forty requests are shown on pages, and each page is seen before all are approved", async ({
    chat: { page },
  }) => {
    const chat = await new ChatPage(page, raised).open();
    await chat.send("forty payments");
    await expect(chat.log.getByRole("group", { name: "40 approvals" })).toBeVisible();
    const approveAll = chat.log.getByRole("button", { name: "Approve all" });
    for (let index = 1; index < 8; index += 1) {
      await expect(approveAll).toBeDisabled();
      await chat.log.getByRole("button", { name: "Next" }).click();
      await expect(chat.log).toContainText(`Page ${index + 1} of 8`);
    }
    await approveAll.click();
    await expect(chat.answer).toContainText("That is all.");
    expect(await raised.effects()).toHaveLength(40);
  });
});
