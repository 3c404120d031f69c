import { ChatPage } from "./chat-page.ts";
import { expect, test } from "./test.ts";

for (const transport of ["sse", "websocket"] as const) {
  test(`a server dies while a card waits, and the yes still pays once, ${transport}`, async ({
    page,
    own,
  }) => {
    const chat = await new ChatPage(page, own).open({ transport });
    await chat.say("Pay Ada 50 euros");
    await expect(chat.card("Send money")).toBeVisible();
    await own.kill();
    await own.start();
    await chat.approve("Send money");
    await expect(chat.answer).toContainText("The payment is settled");
    await chat.finished();
    expect(await own.effects()).toHaveLength(1);
  });

  test(`a server dies in the middle of an answer, and the page says so, ${transport}`, async ({
    page,
    own,
  }) => {
    const chat = await new ChatPage(page, own).open({ transport });
    await chat.say("Tell me a long story");
    await expect(chat.answer).toContainText("Once a miller");
    await own.kill();
    await expect(chat.alert).toBeVisible();
    await own.start();
    await chat.say("Hello!");
    await expect(chat.answer).toContainText("Before I touch data or money, you are asked.");
  });
}
