import { expect, test } from "./test.ts";

const PAID = /process_payment/;

for (const transport of ["sse", "websocket"] as const) {
  test.describe(`over ${transport}`, () => {
    test("an approved payment is made once and told", async ({ chat, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.say("Pay Ada 50 euros");
      await expect(chat.card("Send money")).toContainText("Ada");
      await expect(chat.card("Send money")).toBeFocused();
      await expect(chat.page.getByRole("status")).toContainText("Approval needed: Send money");
      await chat.approve("Send money");
      await expect(chat.answer).toContainText("The payment is settled");
      await expect(chat.tool("Send money")).toContainText("done");
      await chat.finished();
      expect((await server.effects()).slice(before.length)).toEqual([expect.stringMatching(PAID)]);
    });

    test("a denied search ends with the reason and runs nothing", async ({ chat }) => {
      await chat.open({ transport });
      await chat.say("Search the database for users");
      await chat.deny("Search the customer database", "not these people");
      await expect(chat.answer).toContainText("That was the search.");
      await expect(chat.tool("Search the customer database")).toContainText("denied");
      await expect(chat.tool("Search the customer database")).toContainText("not these people");
      await chat.finished();
    });

    test("two cards of one step send their answers together", async ({ chat, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      const posts: string[] = [];
      chat.page.on("request", (request) => {
        if (request.method() === "POST") posts.push(request.url());
      });
      await chat.say("Search and update the database at the same time");
      await expect(chat.cards).toHaveCount(2);
      const asked = posts.length;
      await chat.approve("Search the customer database");
      await expect(chat.card("Search the customer database")).toContainText(
        "approved, not sent yet",
      );
      await expect(chat.card("Change the customer database")).toBeFocused();
      await chat.deny("Change the customer database");
      await expect(chat.answer).toContainText("Both steps are settled.");
      await chat.finished();
      expect(posts.length - asked).toBe(transport === "sse" ? 1 : 0);
      expect(await server.effects()).toEqual(before);
    });

    test("one press approves a whole group", async ({ chat }) => {
      await chat.open({ transport });
      await chat.say("Search and update the database at the same time");
      await chat.log.getByRole("button", { name: "Approve all" }).click();
      await expect(chat.answer).toContainText("Both steps are settled.");
      await expect(chat.tool("Search the customer database")).toContainText("done");
      await expect(chat.tool("Change the customer database")).toContainText("done");
      await chat.finished();
    });

    for (const release of ["deferred", "progressive"] as const) {
      test(`two steps in a row ask one after the other, ${release}`, async ({ chat }) => {
        await chat.open({ transport, release });
        await chat.say("Find the inactive users, then archive them");
        await chat.approve("Search the customer database");
        await expect(chat.card("Change the customer database")).toBeVisible();
        const first = chat.tool("Search the customer database");
        await expect(first).toContainText(
          release === "deferred" ? "done, waiting for your other approvals" : "done",
        );
        await chat.approve("Change the customer database");
        await expect(chat.answer).toContainText("I have gone through both steps");
        await expect(first.getByText("done", { exact: true })).toBeVisible();
        await chat.finished();
      });
    }

    test("five payments in a row are five questions and five payments", async ({
      chat,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.say("Pay my five invoices one after the other");
      for (const shop of ["Print", "Flower", "Book", "Bike", "Tea"]) {
        await expect(chat.card("Send money")).toContainText(`${shop} Shop`);
        await chat.approve("Send money");
      }
      await expect(chat.answer).toContainText("Those were the five invoices.");
      await chat.finished();
      expect((await server.effects()).length - before.length).toBe(5);
    });

    test("a free tool beside a gate shows that its result waits", async ({ chat }) => {
      await chat.open({ transport });
      await chat.say("How is the weather in Bern? And pay the guide");
      await expect(chat.tool("Look up the weather")).toContainText(
        "done, waiting for your other approvals",
      );
      await chat.deny("Send money");
      await expect(chat.answer).toContainText("The weather in Bern is above.");
      await expect(
        chat.tool("Look up the weather").getByText("done", { exact: true }),
      ).toBeVisible();
      await chat.finished();
    });

    test("a card that waits is there after a reload, and still counts once", async ({
      chat,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.say("Pay Ada 50 euros");
      const asked = chat.card("Send money").getByText(/^\w+ wants to call process_payment$/);
      const who = await asked.textContent();
      await chat.page.reload();
      await expect(asked).toHaveText(String(who));
      await expect(
        chat.page.getByRole("link", { name: /Pay Ada.*1 approval waits/ }).first(),
      ).toBeVisible();
      await chat.approve("Send money");
      await expect(chat.answer).toContainText("The payment is settled");
      await chat.finished();
      expect((await server.effects()).length - before.length).toBe(1);
    });
  });
}

test("a new message withdraws what waits", async ({ chat, server }) => {
  await chat.open();
  const before = await server.effects();
  await chat.say("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toBeVisible();
  await chat.say("Hello!");
  await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
  await expect(chat.tool("Send money")).toContainText("withdrawn");
  await expect(chat.cards).toHaveCount(0);
  expect(await server.effects()).toEqual(before);
});

test("an edited payment pays what was edited and says so to the model", async ({
  chat,
  server,
}) => {
  await chat.open();
  await chat.say("Pay Ada 50 euros");
  const card = chat.card("Send money");
  await card.getByRole("button", { name: "Edit" }).click();
  await card.getByRole("textbox", { name: /amount/i }).fill("40");
  await card.getByRole("button", { name: /^Approve/ }).click();
  await expect(chat.answer).toContainText("The payment is settled");
  await chat.finished();
  expect((await server.effects()).at(-1)).toContain("40");
  const row = chat.tool("Send money");
  const details = row.getByRole("button", { name: "Details" });
  const amount = row.getByRole("table", { name: "Arguments" }).getByText("40");
  await details.click();
  await expect(amount).toBeVisible();
  await chat.page.reload();
  await details.click();
  await expect(amount).toBeVisible();
});

test("a tool that is always allowed in a chat asks no more there", async ({ chat, server }) => {
  await chat.open();
  const before = await server.effects();
  await chat.say("Pay my five invoices one after the other");
  await chat.card("Send money").getByRole("button", { name: "Always in this chat" }).click();
  await expect(chat.answer).toContainText("Those were the five invoices.");
  await chat.finished();
  expect((await server.effects()).length - before.length).toBe(5);
});

test("two tabs answer the same card, and it runs once", async ({ chat, context, server }) => {
  await chat.open();
  const before = await server.effects();
  await chat.say("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toBeVisible();
  const other = await context.newPage();
  await other.goto(chat.page.url());
  const card = other.getByRole("region", { name: "Approval: Send money" });
  await expect(card).toBeVisible();
  await Promise.all([
    chat.approve("Send money"),
    card.getByRole("button", { name: "Approve", exact: true }).click(),
  ]);
  for (const page of [chat.page, other]) {
    await expect(page.getByRole("article", { name: "Assistant" }).last()).toContainText(
      "The payment is settled",
    );
  }
  expect((await server.effects()).length - before.length).toBe(1);
});

test("a yes after another tab's no is told, and the card is closed", async ({
  chat,
  context,
  server,
}) => {
  await chat.open();
  const before = await server.effects();
  await chat.say("Pay Ada 50 euros");
  const other = await context.newPage();
  await other.goto(chat.page.url());
  const card = other.getByRole("region", { name: "Approval: Send money" });
  await expect(card).toBeVisible();
  await chat.deny("Send money");
  await chat.finished();
  await card.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(other.getByText("already decided")).toBeVisible();
  await expect(other.getByRole("region", { name: "Tool: Send money" })).toContainText("denied");
  expect(await server.effects()).toEqual(before);
});
