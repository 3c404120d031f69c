import type { ChatPage, Transport } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

test.beforeEach(async ({ context }) => {
  await context.grantPermissions(["geolocation"]);
  await context.setGeolocation({ latitude: 46.948, longitude: 7.447 });
});

/** Ask for the location of the browser and a payment; the browser has answered, the person not. */
async function askForTaxi(chat: ChatPage, transport: Transport = "sse"): Promise<void> {
  await chat.open({ transport });
  await chat.send("From where I am, book a taxi");
  await expect(chat.tool("Share your location")).toContainText("done");
  await expect(chat.card("Send money")).toBeVisible();
}

async function expectAnswer(chat: ChatPage, state: string): Promise<void> {
  await expect(chat.answer).toContainText("I have heard back about both.");
  await chat.waitForEnd();
  await expect(chat.tool("Share your location")).toContainText("done");
  await expect(chat.tool("Send money")).toContainText(state);
  await expect(chat.alert).toHaveCount(0);
}

for (const transport of ["sse", "websocket"] as const) {
  test(`an answer goes on after an approval beside an output of the browser, over ${transport}`, async ({
    chat,
  }) => {
    await askForTaxi(chat, transport);
    await chat.approve("Send money");
    await expectAnswer(chat, "done");
  });
}

test("an answer goes on after a denial beside an output of the browser", async ({ chat }) => {
  await askForTaxi(chat);
  await chat.deny("Send money");
  await expectAnswer(chat, "denied");
});

test("a reloaded page answers again, and goes on after the approval", async ({ chat }) => {
  await askForTaxi(chat);
  await chat.page.reload();
  await expect(chat.tool("Share your location")).toContainText("done");
  await chat.approve("Send money");
  await expectAnswer(chat, "done");
});

test("an output of the browser stays when the page is looked at again", async ({ chat }) => {
  await askForTaxi(chat);
  const loaded = chat.page.waitForResponse(/\/api\/chats\/[^/]+$/);
  await chat.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await loaded;
  await chat.approve("Send money");
  await expectAnswer(chat, "done");
});

test("an output of the browser is sent after a decision that was made elsewhere", async ({
  chat,
  request,
}) => {
  await askForTaxi(chat);
  const id = await chat.log.locator("[data-approval]").getAttribute("data-approval");
  await request.post(`${chat.url}/api/approvals/${id}`, { data: { approved: true } });
  await expectAnswer(chat, "done");
});

test("an output of the browser that was lost with the connection is sent again", async ({
  chat,
}) => {
  await askForTaxi(chat);
  await chat.page.route("**/api/chat", (route) => route.abort("connectionreset"), { times: 1 });
  await chat.approve("Send money");
  await expectAnswer(chat, "done");
});
