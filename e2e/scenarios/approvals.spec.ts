import { expect, test } from "./fixtures.ts";

const PAID = /process_payment/;

for (const transport of ["sse", "websocket"] as const) {
  test.describe(`over ${transport}`, () => {
    test("an approved payment is executed once and reported", async ({ chat, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      await expect(chat.card("Send money")).toContainText("Ada");
      // A card that arrives leaves the focus where it is.
      await expect(chat.message).toBeFocused();
      await expect(chat.page.getByRole("status")).toContainText("Approval needed: Send money");
      await chat.approve("Send money");
      await expect(chat.answer).toContainText("The payment is settled");
      await expect(chat.tool("Send money")).toContainText("done");
      await chat.waitForEnd();
      expect((await server.effects()).slice(before.length)).toEqual([expect.stringMatching(PAID)]);
    });

    test("a denied search shows the reason and executes nothing", async ({ chat }) => {
      await chat.open({ transport });
      await chat.send("Search the database for users");
      await chat.deny("Search the customer database", "not these people");
      await expect(chat.answer).toContainText("That was the search.");
      await expect(chat.tool("Search the customer database")).toContainText("denied");
      await expect(chat.tool("Search the customer database")).toContainText("not these people");
      await chat.waitForEnd();
    });

    test("each decision of one step is final when it is made", async ({ chat, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      const posts: string[] = [];
      chat.page.on("request", (request) => {
        if (request.method() === "POST") posts.push(new URL(request.url()).pathname);
      });
      await chat.send("Search and update the database at the same time");
      await expect(chat.cards).toHaveCount(2);
      posts.length = 0;
      await chat.approve("Search the customer database");
      await expect(chat.card("Search the customer database")).toContainText("approved");
      await expect(chat.card("Change the customer database")).toBeFocused();
      expect(posts).toEqual([expect.stringContaining("/api/approvals/")]);
      await chat.deny("Change the customer database");
      await expect(chat.answer).toContainText("Both steps are settled.");
      await chat.waitForEnd();
      expect(posts).toHaveLength(2);
      expect(await server.effects()).toEqual(before);
    });

    test("one click approves a whole group", async ({ chat }) => {
      await chat.open({ transport });
      await chat.send("Search and update the database at the same time");
      await chat.log.getByRole("button", { name: "Approve all" }).click();
      await expect(chat.answer).toContainText("Both steps are settled.");
      await expect(chat.tool("Search the customer database")).toContainText("done");
      await expect(chat.tool("Change the customer database")).toContainText("done");
      await chat.waitForEnd();
    });

    for (const release of ["deferred", "progressive"] as const) {
      test(`two steps in sequence request one approval each, ${release}`, async ({ chat }) => {
        await chat.open({ transport, release });
        await chat.send("Find the inactive users, then archive them");
        await chat.approve("Search the customer database");
        await expect(chat.card("Change the customer database")).toBeVisible();
        const first = chat.tool("Search the customer database");
        await expect(first).toContainText(
          release === "deferred" ? "done, waiting for your other approvals" : "done",
        );
        await chat.approve("Change the customer database");
        await expect(chat.answer).toContainText("I have gone through both steps");
        await expect(first.getByText("done", { exact: true })).toBeVisible();
        await chat.waitForEnd();
      });
    }

    for (const release of ["deferred", "preview", "progressive"] as const) {
      test(`a new message shows the text that its approval held back, ${release}`, async ({
        chat,
      }) => {
        await chat.open({ transport, release });
        await chat.send("Pay Ada 50 euros");
        await expect(chat.card("Send money")).toBeVisible();
        const first = chat.log.getByRole("article", { name: "Assistant" }).first();
        await chat.send("Think about it for ever");
        // The next answer does not end, so the chat is not loaded because of its end.
        await expect(chat.page.getByRole("button", { name: "Stop" })).toBeVisible();
        for (const _ of ["live", "stored"]) {
          await expect(first).toContainText("I prepare the payment");
          await expect(first.getByRole("region", { name: "Tool: Send money" })).toContainText(
            "withdrawn",
          );
          await chat.page.reload();
        }
        await chat.page.getByRole("button", { name: "Stop" }).click();
        await chat.waitForEnd();
      });
    }

    test("five payments in sequence are five approvals and five payments", async ({
      chat,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay my five invoices one after the other");
      for (const shop of ["Print", "Flower", "Book", "Bike", "Tea"]) {
        await expect(chat.card("Send money")).toContainText(`${shop} Shop`);
        await chat.approve("Send money");
      }
      await expect(chat.answer).toContainText("Those were the five invoices.");
      await chat.waitForEnd();
      expect((await server.effects()).length - before.length).toBe(5);
    });

    test("an ungated tool beside a gated one shows that its result is held back", async ({
      chat,
    }) => {
      await chat.open({ transport, release: "deferred" });
      await chat.send("How is the weather in Bern? And pay the guide");
      await expect(chat.tool("Look up the weather")).toContainText(
        "done, waiting for your other approvals",
      );
      await chat.deny("Send money");
      await expect(chat.answer).toContainText("The weather in Bern is above.");
      await expect(
        chat.tool("Look up the weather").getByText("done", { exact: true }),
      ).toBeVisible();
      await chat.waitForEnd();
    });

    test("a pending approval survives a reload and pays once", async ({ chat, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      const request = chat.card("Send money").getByText(/^\w+ wants to call process_payment$/);
      const text = await request.textContent();
      await chat.page.reload();
      await expect(request).toHaveText(String(text));
      await expect(
        chat.page.getByRole("link", { name: /Pay Ada.*1 approval waits/ }).first(),
      ).toBeVisible();
      await chat.approve("Send money");
      await expect(chat.answer).toContainText("The payment is settled");
      await chat.waitForEnd();
      expect((await server.effects()).length - before.length).toBe(1);
    });

    test("a new message withdraws pending approvals", async ({ chat, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      await expect(chat.card("Send money")).toBeVisible();
      await chat.send("Hello!");
      await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
      await expect(chat.tool("Send money")).toContainText("withdrawn");
      await expect(chat.cards).toHaveCount(0);
      expect(await server.effects()).toEqual(before);
    });

    test("an edited payment pays the edited amount and shows it", async ({ chat, server }) => {
      await chat.open({ transport });
      await chat.send("Pay Ada 50 euros");
      const card = chat.card("Send money");
      await card.getByRole("button", { name: "Edit" }).click();
      await card.getByRole("textbox", { name: /amount/i }).fill("40");
      await card.getByRole("button", { name: /^Approve/ }).click();
      await expect(chat.answer).toContainText("The payment is settled");
      await chat.waitForEnd();
      expect((await server.effects()).at(-1)).toContain("40");
      const row = chat.tool("Send money");
      const details = row.getByRole("button", { name: "Details" });
      const amount = row.getByRole("table", { name: "Arguments" }).getByText("40");
      await expect(row).toContainText("Ada, 40");
      await expect(row).toContainText(
        /Approved by local, (?:\d+ \w+ \d{4}, )?\d\d:\d\d, with changes/,
      );
      await expect(row.getByRole("list", { name: "Changes" })).toContainText("amount: 50 → 40");
      await details.click();
      await expect(amount).toBeVisible();
      await chat.page.reload();
      await details.click();
      await expect(amount).toBeVisible();
    });

    test("a tool that is always allowed in a chat requests no further approvals", async ({
      chat,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay my five invoices one after the other");
      const card = chat.card("Send money");
      await card.getByRole("button", { name: "Do not ask again…" }).click();
      await card.getByRole("radio", { name: /any values/ }).click();
      await card.getByRole("button", { name: "Continue" }).click();
      await card.getByRole("button", { name: "Approve and do not ask again" }).click();
      await expect(chat.answer).toContainText("Those were the five invoices.");
      await chat.waitForEnd();
      expect((await server.effects()).length - before.length).toBe(5);
    });

    test("two tabs approve the same call, and it is executed once", async ({
      chat,
      context,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      await expect(chat.card("Send money")).toBeVisible();
      const other = await context.newPage();
      await other.goto(chat.page.url());
      // Neither click waits for anything: the first decision removes the card of the other tab.
      const approve = { name: "Approve", exact: true };
      const buttons = await Promise.all(
        [chat.page, other].map(async (page) => {
          const button = page.getByRole("button", approve);
          await expect(button).toBeEnabled();
          return button.elementHandle();
        }),
      );
      await Promise.all(
        buttons.map((button) => button?.evaluate((node) => (node as HTMLElement).click())),
      );
      for (const page of [chat.page, other]) {
        await expect(page.getByRole("article", { name: "Assistant" }).last()).toContainText(
          "The payment is settled",
        );
      }
      expect((await server.effects()).length - before.length).toBe(1);
    });

    test("a denial in another tab closes the card, and nothing runs", async ({
      chat,
      context,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      const other = await context.newPage();
      await other.goto(chat.page.url());
      const card = other.getByRole("region", { name: "Approval: Send money" });
      await expect(card).toBeVisible();
      await chat.deny("Send money");
      await chat.waitForEnd();
      await expect(card).toHaveCount(0);
      await expect(other.getByRole("region", { name: "Tool: Send money" })).toContainText("denied");
      expect(await server.effects()).toEqual(before);
    });
  });
}
