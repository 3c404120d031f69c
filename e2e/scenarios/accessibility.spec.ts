import { accessibilityViolations } from "./accessibility.ts";
import type { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

const STATES: Record<string, (chat: ChatPage) => Promise<void>> = {
  empty: async () => {},
  streaming: async (chat) => {
    await chat.send("Think about it for ever");
    await expect(chat.answer).toContainText("will not stop by myself");
  },
  "one approval": async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await expect(chat.cards).toHaveCount(1);
  },
  "a group": async (chat) => {
    await chat.send("Search and update the database at the same time");
    await expect(chat.cards).toHaveCount(2);
  },
  "a form": async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await chat.card("Send money").getByRole("button", { name: "Edit" }).click();
  },
  "a grant": async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await chat.card("Send money").getByRole("button", { name: "Do not ask again…" }).click();
  },
  grants: async (chat) => {
    await STATES["a grant"]?.(chat);
    await chat
      .card("Send money")
      .getByRole("button", { name: /do not ask again$/ })
      .click();
    await chat.waitForEnd();
    await chat.page
      .getByRole("button", { name: "Rename or delete: Pay Ada 50 euros" })
      .first()
      .click();
    await expect(chat.page.getByRole("region", { name: "Always allowed" })).toBeVisible();
  },
  "held results": async (chat) => {
    await chat.send("How is the weather in Bern? And pay the guide");
    await expect(chat.tool("Look up the weather")).toContainText("waiting");
  },
  "an answer": async (chat) => {
    await chat.send("Compute the first five squares");
    await chat.waitForEnd();
  },
  "a failure": async (chat) => {
    await chat.send("Show me how you fail");
    await expect(chat.alert).toBeVisible();
  },
  inspector: async (chat) => {
    await chat.send("Hello!");
    await chat.waitForEnd();
    await chat.page.getByRole("button", { name: "Inspector" }).click();
  },
};

for (const [state, reach] of Object.entries(STATES)) {
  test(`the page has no accessibility violations: ${state}`, async ({ chat }) => {
    await chat.open();
    await reach(chat);
    expect(await accessibilityViolations(chat.page)).toEqual([]);
  });
}

test("a narrow screen shows everything, with the chats behind a button", async ({ chat }) => {
  await chat.page.setViewportSize({ width: 360, height: 740 });
  await chat.open();
  await chat.send("Search and update the database at the same time");
  await expect(chat.cards).toHaveCount(2);
  // The first card has the focus, and the group is scrolled to its top.
  await expect(chat.log.getByRole("button", { name: "Approve all" })).toBeInViewport();
  const width = await chat.page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(360);
  await chat.page.getByRole("button", { name: "Show the chats" }).click();
  await expect(chat.page.getByRole("button", { name: "New chat" })).toBeVisible();
});

test("a person sends and decides with the keyboard, and no stray key decides", async ({
  chat,
  server,
}) => {
  await chat.open();
  const before = await server.effects();
  const { keyboard } = chat.page;
  await keyboard.type("Pay Ada 50 euros");
  await keyboard.press("Enter");
  await expect(chat.card("Send money")).toBeFocused();
  await keyboard.press("Enter");
  await keyboard.press("Escape");
  await keyboard.press("Space");
  await expect(chat.card("Send money")).toContainText("waits for you");
  await keyboard.press("Tab");
  await expect(chat.card("Send money").getByRole("button", { name: "Approve" })).toBeFocused();
  await keyboard.press("Enter");
  await expect(chat.answer).toContainText("The payment is settled");
  await chat.waitForEnd();
  expect((await server.effects()).length - before.length).toBe(1);
});

test("a card has an accessible structure", async ({ chat }) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toMatchAriaSnapshot(`
    - 'region "Approval: Send money"':
      - paragraph: Send money
      - time: /Expires in 2[34] h/
      - text: waits for you
      - paragraph: sluicegate_demo wants to call process_payment
      - table "Arguments":
        - rowgroup:
          - row "recipient Ada"
          - row "amount 50"
          - row "currency EUR (default, not given by the agent)"
      - button "Approve"
      - button "Edit"
      - button "Do not ask again…"
      - button "Deny"
      - textbox "Reason for denying (optional)"
  `);
});

test("a held result has an accessible state", async ({ chat }) => {
  await chat.open();
  await chat.send("How is the weather in Bern? And pay the guide");
  await expect(chat.tool("Look up the weather")).toMatchAriaSnapshot(`
    - 'region "Tool: Look up the weather"':
      - paragraph: Look up the weather
      - text: done, waiting for your other approvals
      - button "Details"
  `);
});
