import type { Locator } from "@playwright/test";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";
import { isRowPlayed } from "./parts.ts";
import { observeHistory } from "./shown-texts.ts";

const STATES: Record<string, (chat: ChatPage) => Promise<void>> = {
  empty: async () => {},
  streaming: async (chat) => {
    await chat.send("Think about it for ever");
    await expect(chat.answer).toContainText("will not stop by myself");
  },
  "a queued message": async (chat) => {
    await STATES.streaming?.(chat);
    await chat.message.fill("Hello!");
    await chat.message.press("Enter");
    await expect(chat.page.getByRole("button", { name: "Do not send" })).toBeVisible();
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
  "a denial": async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await chat.card("Send money").getByRole("button", { name: "Deny" }).click();
  },
  "a decision that was not confirmed": async (chat) => {
    await chat.page.route("**/api/approvals/**", (route) => route.abort());
    await chat.send("Pay Ada 50 euros");
    await chat.approve("Send money");
    await expect(chat.card("Send money")).toContainText("not confirmed");
  },
  "a decided card of a group": async (chat) => {
    await chat.send("Search and update the database at the same time");
    await chat.approve("Search the customer database");
    await expect(chat.card("Search the customer database")).toContainText("approved");
  },
  "an edited payment": async (chat) => {
    await STATES["a form"]?.(chat);
    const card = chat.card("Send money");
    await card.getByRole("textbox", { name: "amount" }).fill("40");
    await card.getByRole("button", { name: "Approve with changes" }).click();
    await chat.waitForEnd();
  },
  grants: async (chat) => {
    await STATES["a grant"]?.(chat);
    await chat.card("Send money").getByRole("button", { name: "Continue" }).click();
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
  "a denied call": async (chat) => {
    await chat.send("Pay Ada 50 euros");
    await chat.deny("Send money", "Not before Friday");
    await chat.waitForEnd();
  },
  "a running chat in the list": async (chat) => {
    await STATES.streaming?.(chat);
    await chat.page.reload();
    await expect(chat.page.getByRole("img", { name: "Running" }).first()).toBeVisible();
  },
  "the chats on a narrow screen": async (chat) => {
    await chat.page.setViewportSize({ width: 360, height: 740 });
    await chat.page.getByRole("button", { name: "Show the chats" }).click();
    await expect(chat.page.getByRole("button", { name: "New chat" })).toBeVisible();
  },
  "a refused deletion": async (chat) => {
    await chat.page.route("**/api/chats/*", (route) =>
      route.request().method() === "DELETE"
        ? route.fulfill({ status: 409, body: "The chat is running." })
        : route.fallback(),
    );
    await chat.send("Hello! What can you do?");
    await chat.waitForEnd();
    await chat.page
      .getByRole("button", { name: /^Rename or delete: Hello!/ })
      .first()
      .click();
    const settings = chat.page.getByRole("dialog", { name: "Chat settings" });
    await settings.getByRole("button", { name: "Delete" }).click();
    await settings.getByRole("button", { name: "Delete for good" }).click();
    await expect(settings.getByRole("alert")).toContainText("The chat is running.");
  },
  "no network": async (chat) => {
    await chat.page.context().setOffline(true);
    await chat.message.fill("Pay Ada 50 euros");
    await chat.message.press("Enter");
    await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
  },
  "a voice session that did not start": async (chat) => {
    await chat.page.addInitScript(() => {
      const refuse = () => Promise.reject(new DOMException("No microphone.", "NotAllowedError"));
      navigator.mediaDevices.getUserMedia = refuse;
    });
    await chat.page.reload();
    await chat.page.getByRole("button", { name: "Speak" }).click();
    await expect(chat.alert).toBeVisible();
  },
  "held results": async (chat) => {
    await chat.open({ release: "deferred" });
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
  "developer tools": async (chat) => {
    await chat.page.getByRole("button", { name: "Developer tools", exact: true }).click();
    const tools = chat.page.getByRole("dialog", { name: "Developer tools" });
    await expect(tools).toBeVisible();
    await chat.send("Hello!");
    await chat.waitForEnd();
    await expect(tools.getByRole("button", { name: /text-delta/ }).first()).toBeVisible();
  },
};

for (const [row, [state, reach]] of Object.entries(STATES).entries()) {
  test(`the page has no accessibility violations: ${state}`, async ({ chat }) => {
    test.skip(!isRowPlayed(row), "played in the run of another day");
    await chat.open();
    await reach(chat);
    expect(await accessibilityViolations(chat.page)).toEqual([]);
  });
}

test("the page has no accessibility violations: a chat that cannot be shown", async ({
  page,
  server,
}) => {
  const chat = await new ChatPage(page, server).open();
  await chat.send("Hello! What can you do?");
  await chat.waitForEnd();
  await page.route("**/api/chats/*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const messages = [{ id: "broken", role: "assistant", parts: [null] }];
    await route.fulfill({ response, json: { ...json, messages } });
  });
  await page.reload();
  await expect(chat.alert).toContainText("This chat cannot be shown.");
  expect(await accessibilityViolations(page)).toEqual([]);
});

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

/** Move the focus back from the composer until it is in an element. */
async function shiftTabTo(element: Locator): Promise<void> {
  const { keyboard } = element.page();
  await expect(async () => {
    await keyboard.press("Shift+Tab");
    expect(await element.evaluate((node) => node.contains(document.activeElement))).toBe(true);
  }).toPass();
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a person sends and decides by keyboard and by what is read out, ${transport}`, async ({
    chat,
    server,
  }) => {
    await chat.open({ transport });
    const before = await server.effects();
    const { keyboard } = chat.page;
    const status = chat.page.getByRole("status").first();
    await keyboard.type("Search and update the database at the same time");
    await keyboard.press("Enter");
    await expect(status).toContainText(
      "2 approvals needed: Search the customer database (inactive users); Change the customer database",
    );
    // The arrival of the cards leaves the focus in the composer, where letters are text.
    await expect(chat.message).toBeFocused();
    await keyboard.type("a");
    await expect(chat.message).toHaveValue("a");
    const first = chat.card("Search the customer database");
    const second = chat.card("Change the customer database");
    await shiftTabTo(second);
    await shiftTabTo(first);
    await expect(first).toContainText("Keys in this card: A approve, D deny, E edit");
    await expect(first.getByRole("button", { name: "Approve" })).toBeEnabled();
    // The next sentence may replace one at once.
    const said = await observeHistory(status);
    await keyboard.press("a");
    const approved = "Search the customer database (inactive users): approved.";
    await expect.poll(said).toContainEqual(expect.stringContaining(approved));
    await expect(second).toBeFocused();
    for (const key of ["Enter", "Escape", "Space"]) await keyboard.press(key);
    await expect(second).toContainText("waits for you");
    await keyboard.press("Tab");
    await expect(second.getByRole("button", { name: "Approve" })).toBeFocused();
    await keyboard.press("Tab");
    await keyboard.press("Enter");
    await expect(second.getByRole("textbox")).toBeFocused();
    await keyboard.type("a wrong change");
    await keyboard.press("Enter");
    const denied = /Change the customer database .*: denied\./;
    await expect.poll(said).toContainEqual(expect.stringMatching(denied));
    await expect(chat.answer).toContainText("Both steps are settled.");
    await expect(status).toContainText("Search the customer database (inactive users): done.");
    const row = chat.tool("Change the customer database");
    await expect(row).toContainText("a wrong change");
    await expect(row).toBeFocused();
    expect(await server.effects()).toEqual(before);
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a payment is approved by keyboard, with roles, names and announcements alone, ${transport}`, async ({
    chat,
    server,
  }) => {
    await chat.open({ transport });
    const before = await server.effects();
    const { page } = chat;
    const status = page.getByRole("status").first();
    await page.keyboard.type("Pay Ada 50 euros");
    await page.keyboard.press("Enter");
    await expect(status).toHaveText("Approval needed: Send money (Ada, 50 EUR).");
    const card = page.getByRole("region", { name: "Approval: Send money" });
    const approve = card.getByRole("button", { name: "Approve" });
    await expect(approve).toBeEnabled();
    await shiftTabTo(approve);
    await expect(card.getByRole("row", { name: "amount 50 EUR" })).toBeVisible();
    await page.keyboard.press("Enter");
    await expect(status).toHaveText(/Send money \(Ada, 50.*\): done\./);
    const row = page.getByRole("region", { name: "Tool: Send money" });
    await expect(row).toBeFocused();
    await expect(chat.answer).toContainText("The payment is settled");
    expect((await server.effects()).length - before.length).toBe(1);
  });
}

test("letters of a card can be turned off", async ({ chat }) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  const card = chat.card("Send money");
  await card.focus();
  await card.getByRole("button", { name: "Turn the keys off" }).click();
  await card.focus();
  await chat.page.keyboard.press("d");
  await expect(card.getByRole("button", { name: "Approve" })).toBeEnabled();
  await expect(card.getByRole("textbox")).toHaveCount(0);
  await card.getByRole("button", { name: "Turn the keys on" }).click();
  await card.focus();
  await chat.page.keyboard.press("d");
  await expect(card.getByRole("textbox")).toBeFocused();
});

test("a card has an accessible structure", async ({ chat }) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  const card = chat.card("Send money");
  await card.focus();
  await expect(card).toMatchAriaSnapshot(`
    - 'region "Approval: Send money"':
      - paragraph: Send money
      - time: /Expires in 2[34] h/
      - text: waits for you
      - paragraph: sluicegate_demo wants to call process_payment
      - table "Arguments":
        - rowgroup:
          - row "recipient Ada"
          - row "amount 50 EUR"
          - row "currency EUR (default of the tool, not given by the agent)"
      - button "Approve"
      - button "Deny"
      - button "Edit"
      - button "Do not ask again…"
      - text: "Keys in this card: A approve, D deny, E edit"
      - button "Turn the keys off"
  `);
});

test("a held result has an accessible state", async ({ chat }) => {
  await chat.open({ release: "deferred" });
  await chat.send("How is the weather in Bern? And pay the guide");
  await expect(chat.tool("Look up the weather")).toMatchAriaSnapshot(`
    - 'region "Tool: Look up the weather"':
      - paragraph: Look up the weather Bern
      - text: done, waiting for your other approvals
      - button "Details"
  `);
});

/** The colours of errors and of the text around them, in both colour schemes. */
async function colorsOf(error: Locator): Promise<string[]> {
  const colors: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await error.page().emulateMedia({ colorScheme });
    colors.push(await error.evaluate((element) => getComputedStyle(element).color));
  }
  return colors;
}

for (const transport of ["sse", "websocket"] as const) {
  test(`errors have the colour of errors, in both colour schemes, ${transport}`, async ({
    chat,
  }) => {
    const danger = ["rgb(174, 32, 24)", "rgb(255, 157, 147)"];
    await chat.open({ transport });
    await chat.send("How is the weather in Atlantis?");
    const failure = chat.tool("Look up the weather").getByText("There is no weather station");
    await expect(failure).toBeVisible();
    expect(await colorsOf(failure)).toEqual(danger);
    await chat.waitForEnd();
    await chat.send("Pay Ada 50 euros");
    const card = chat.card("Send money");
    await card.getByRole("button", { name: "Edit" }).click();
    await card.getByRole("textbox", { name: "amount" }).fill("much");
    await card.getByRole("button", { name: "Approve with changes" }).click();
    const problem = card.getByText("Type a number in digits");
    await expect(problem).toBeVisible();
    expect(await colorsOf(problem)).toEqual(danger);
    await card.getByRole("textbox", { name: "amount" }).fill("40");
    await chat.page.route("**/api/approvals/**", (route) => route.abort());
    await card.getByRole("button", { name: "Approve with changes" }).click();
    expect(await colorsOf(card.getByText("Your approval was not confirmed"))).toEqual(danger);
    expect(await colorsOf(card.getByText("not confirmed", { exact: true }))).toEqual(danger);
    await chat.send("Show me how you fail");
    await expect(chat.alert).toBeVisible();
    expect(await colorsOf(chat.alert.locator(".alert-title"))).toEqual(danger);
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a button under the pointer is readable while its decision is sent, ${transport}`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    await chat.send("Pay Ada 50 euros");
    await chat.page.route("**/api/approvals/*", () => {});
    await chat.approve("Send money");
    const card = chat.card("Send money");
    await expect(card).toContainText("being sent");
    const colors = (name: string) =>
      card.getByRole("button", { name, exact: true }).evaluate((button) => {
        const { backgroundColor, color } = getComputedStyle(button);
        return `${color} on ${backgroundColor}`;
      });
    for (const colorScheme of ["light", "dark"] as const) {
      await chat.page.emulateMedia({ colorScheme });
      await expect(async () => expect(await colors("Approve")).toBe(await colors("Deny"))).toPass({
        timeout: 30_000,
      });
    }
  });
}
