import type { Page } from "@playwright/test";
import { ChatPage } from "./chat-page.ts";
import { test as base, expect } from "./fixtures.ts";
import { observeTexts } from "./shown-texts.ts";

const test = base.extend({
  chat: async ({ page, server, network }, use) => {
    await use(new ChatPage(page, server, network.url));
  },
});

const STORY_START = "Once a miller";
const STORY_END = "all there is to tell about gates.";

/** The story has arrived once and completely. */
async function expectStory(chat: ChatPage): Promise<void> {
  await expect(chat.answer).toContainText(STORY_END);
  await chat.waitForEnd();
  const text = (await chat.log.textContent()) ?? "";
  expect(text.split(STORY_START)).toHaveLength(2);
  expect(text.split(STORY_END)).toHaveLength(2);
  await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
  await expect(chat.alert).toHaveCount(0);
}

test("a chat that could not be opened without a network opens when it is back", async ({
  chat,
  network,
}) => {
  await chat.open();
  await chat.send("Hello!");
  await chat.waitForEnd();
  const answer = chat.log.getByText("Before I touch data or money, you are asked.");
  await chat.page.getByRole("button", { name: "New chat" }).click();
  await expect(answer).toBeHidden();
  network.cut();
  await chat.page.goBack();
  await expect(chat.alert).toContainText("The chat could not be opened");
  await expect(chat.alert.getByRole("button", { name: "Try again" })).toBeVisible();
  network.restore();
  await expect(answer).toBeVisible();
  await expect(chat.alert).toHaveCount(0);
});

/** Wait until the server has said that no turn runs: until then a message would be queued. */
async function untilIdle(page: Page, transport: "sse" | "websocket"): Promise<unknown> {
  if (transport === "sse") return page.waitForResponse((response) => response.status() === 204);
  const socket = await page.waitForEvent("websocket");
  return socket.waitForEvent("framereceived", ({ payload }) =>
    String(payload).includes('"no-active"'),
  );
}

for (const transport of ["sse", "websocket"] as const) {
  test.describe(`over ${transport}`, () => {
    for (const release of ["progressive", "preview"] as const) {
      test(`a cut answer continues by itself, ${release}`, async ({ chat, network }) => {
        await chat.open({ transport, release });
        const observed = await observeTexts(chat.page, [STORY_START]);
        network.holdAfter(STORY_START);
        await chat.send("Tell me a long story");
        await expect(chat.answer).toContainText(STORY_START);
        network.cut();
        await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
        await expect(chat.answer).toContainText(STORY_START);
        network.restore();
        await expectStory(chat);
        await expect(chat.page.getByText("Reconnecting…")).toBeHidden();
        expect(await observed()).toEqual([[STORY_START], []]);
      });
    }

    test("an answer that ended without a network is shown, not generated again", async ({
      chat,
      network,
    }) => {
      const sends: string[] = [];
      chat.page.on("request", (request) => {
        if (request.method() === "POST") sends.push(request.url());
      });
      chat.page.on("websocket", (socket) => {
        socket.on("framesent", ({ payload }) => {
          const { type } = JSON.parse(String(payload));
          if (type === "send") sends.push(type);
        });
      });
      await chat.open({ transport });
      network.holdAfter(STORY_START);
      await chat.send("Tell me a long story");
      await expect(chat.answer).toContainText(STORY_START);
      expect(sends).toHaveLength(1);
      network.cut();
      await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
      const stored = `${chat.server.url}/api/chats/${new URLSearchParams(chat.query).get("chat")}`;
      await expect
        .poll(async () => (await (await chat.page.request.get(stored)).json()).status)
        .toBe("ready");
      network.restore();
      await expectStory(chat);
      expect(sends).toHaveLength(1);
    });

    test("a message that was sent without a network is sent once it is back", async ({
      chat,
      network,
    }) => {
      const idle = untilIdle(chat.page, transport);
      await chat.open({ transport });
      await idle;
      network.cut();
      await chat.send("Hello!");
      await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
      network.restore();
      await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
      await chat.waitForEnd();
      await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
    });

    test("a message that is written while the page reconnects is sent after the answer", async ({
      chat,
      network,
    }) => {
      await chat.open({ transport });
      network.holdAfter(STORY_START);
      await chat.send("Tell me a long story");
      await expect(chat.answer).toContainText(STORY_START);
      network.cut();
      await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
      await chat.message.fill("Hello!");
      await chat.message.press("Enter");
      const note = chat.page.getByText("This message is sent when the connection is back.");
      await expect(note).toBeVisible();
      network.restore();
      await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
      await chat.waitForEnd();
      await expect(note).toBeHidden();
      await expect(chat.message).toHaveValue("");
      await expect(chat.log.getByText(STORY_END)).toBeVisible();
      await expect(chat.log.getByRole("article", { name: "You" })).toHaveText([/story/, /Hello!/]);
      await expect(chat.alert).toHaveCount(0);
    });

    test("a message that was stopped without a network returns to the composer", async ({
      chat,
      network,
      server,
    }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      await expect(chat.card("Send money")).toBeVisible();
      // A card arrives before the end of its answer.
      await expect(chat.page.getByRole("button", { name: "Stop" })).toHaveCount(0);
      network.cut();
      await chat.send("Hello!");
      await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
      const isStopLost = chat.page.waitForEvent("requestfailed", (request) =>
        request.url().endsWith("/stop"),
      );
      await chat.page.getByRole("button", { name: "Stop" }).click();
      await isStopLost;
      await expect(chat.page.getByText("Reconnecting…")).toBeVisible();
      network.restore();
      await expect(chat.card("Send money")).toBeVisible();
      await expect(chat.message).toHaveValue("Hello!");
      await expect(chat.alert).toContainText("The message was stopped before the server had it.");
      await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
      await chat.approve("Send money");
      await expect(chat.answer).toContainText("The payment is settled");
      expect((await server.effects()).length - before.length).toBe(1);
    });

    test("a pending approval survives a cut and pays once", async ({ chat, network, server }) => {
      await chat.open({ transport });
      const before = await server.effects();
      await chat.send("Pay Ada 50 euros");
      await expect(chat.card("Send money")).toBeVisible();
      network.cut();
      network.restore();
      await chat.approve("Send money");
      await expect(chat.answer).toContainText("The payment is settled");
      await chat.waitForEnd();
      expect((await server.effects()).length - before.length).toBe(1);
    });

    test("a frozen connection is replaced within 20 s", async ({ chat, network }) => {
      await chat.page.clock.install();
      await chat.open({ transport });
      network.holdAfter(STORY_START);
      await chat.send("Tell me a long story");
      await expect(chat.answer).toContainText(STORY_START);
      network.freeze();
      const frozen = (await chat.answer.textContent()) ?? "";
      network.restore();
      await chat.page.clock.fastForward(20_000);
      await expect(chat.answer).not.toHaveText(frozen);
      await expectStory(chat);
    });
  });
}

test("a part of the page that cannot be loaded is one sentence, and opens at the next try", async ({
  chat,
}) => {
  await chat.open();
  await chat.send("Hello! What can you do?");
  await chat.waitForEnd();
  const { page } = chat;
  const settings = page.getByRole("button", { name: /^Rename or delete: Hello/ }).first();
  const tools = page.getByRole("button", { name: "Developer tools" });
  await page.route("**/assets/*", (route) => route.abort());
  for (const button of [settings, tools]) {
    await button.click();
    const alert = page.getByRole("navigation").getByRole("alert").last();
    await expect(alert).toHaveText("This could not be loaded; check the network and try again.");
  }
  await expect(chat.log).toBeVisible();
  await page.unrouteAll();
  await settings.click();
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await tools.click();
  await expect(page.getByRole("button", { name: "Close the developer tools" })).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("a transport whose code could not be loaded is loaded when the network is back", async ({
  chat,
}) => {
  const { page } = chat;
  const code = "**/assets/create-bidi-transport-*";
  await page.route(code, (route) => route.abort());
  await chat.open({ transport: "bidi" });
  await chat.send("Hello!");
  await expect(page.getByText("Reconnecting…")).toBeVisible();
  await page.waitForRequest(code);
  await page.unrouteAll();
  await chat.waitForEnd();
  await expect(page.getByText("Reconnecting…")).toBeHidden();
  await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
  await expect(chat.alert).toHaveCount(0);
});
