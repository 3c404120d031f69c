import { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

test("a greeting is answered, and the chat is listed with its first words as title", async ({
  chat,
}) => {
  await chat.open();
  await chat.send("Hello! What can you do?");
  await expect(chat.answer).toContainText("I can look up the weather");
  await chat.waitForEnd();
  await expect(
    chat.page.getByRole("link", { name: /Hello! What can you do/ }).first(),
  ).toBeVisible();
});

test("a long answer continues after a reload and is complete", async ({ chat }) => {
  await chat.open();
  await chat.send("Tell me a long story");
  await expect(chat.answer).toContainText("Once a miller");
  await chat.page.reload();
  await expect(chat.answer).toContainText("all there is to tell about gates.");
  const text = (await chat.answer.textContent()) ?? "";
  expect(text.match(/Once a miller/g)).toHaveLength(1);
  await chat.waitForEnd();
});

test("an answer continues when the network is restored", async ({ chat, context }) => {
  await chat.open({ transport: "websocket" });
  await chat.send("Tell me a long story");
  await expect(chat.answer).toContainText("Once a miller");
  await context.setOffline(true);
  await context.setOffline(false);
  await expect(chat.answer).toContainText("all there is to tell about gates.");
  await chat.waitForEnd();
});

for (const transport of ["sse", "websocket"] as const) {
  test(`a stopped answer keeps its text and is marked over ${transport}, in each tab and after a reload`, async ({
    chat,
    context,
  }) => {
    await chat.open({ transport });
    await chat.send("Think about it for ever");
    await expect(chat.answer).toContainText("will not stop by myself");
    const page = await context.newPage();
    const other = await new ChatPage(page, chat.server).open({ transport }, chat.query);
    await expect(other.answer).toContainText("will not stop by myself");
    await chat.page.getByRole("button", { name: "Stop" }).click();
    for (const tab of [chat, other]) {
      await tab.waitForEnd();
      await expect(tab.answer.getByText("Stopped", { exact: true })).toBeVisible();
    }
    await chat.page.reload();
    await expect(chat.answer).toContainText("will not stop by myself");
    await expect(chat.answer.getByText("Stopped", { exact: true })).toBeVisible();
    await chat.send("Hello!");
    await chat.waitForEnd();
    await expect(chat.answer.getByText("Stopped", { exact: true })).toHaveCount(0);
  });
}

test("a failure shows one sentence, and the message can be sent again", async ({ chat }) => {
  await chat.open();
  await chat.send("Show me how you fail");
  await expect(chat.alert).toContainText("The agent could not finish its answer");
  await chat.alert.getByRole("button", { name: /again/i }).click();
  await expect(chat.alert).toContainText("The agent could not finish its answer");
});

test("reasoning is collapsed, sources are linked, code shows its result", async ({ chat }) => {
  await chat.open();
  await chat.send("Why is the sky blue?");
  await expect(chat.answer).toContainText("Air scatters blue light");
  await expect(chat.answer.getByText("Sunlight holds all colours.")).toBeHidden();
  await chat.answer.getByRole("button", { name: "Thoughts" }).click();
  await expect(chat.answer.getByText("Sunlight holds all colours.")).toBeVisible();
  await chat.waitForEnd();
  await chat.send("What is a sluice gate? Name your sources");
  await expect(chat.answer.getByRole("link", { name: /Sluice/ })).toBeVisible();
  await chat.waitForEnd();
  await chat.send("Compute the first five squares");
  await expect(chat.answer).toContainText("The first five squares are 1, 4, 9, 16 and 25.");
  await chat.waitForEnd();
});

test("an image from a tool is shown, also after a reload", async ({ chat }) => {
  await chat.open();
  await chat.send("Draw a chart of the sales");
  for (const _ of ["live", "stored"]) {
    const image = chat.answer.getByRole("img", { name: /.+/ }).last();
    await expect(image).toBeVisible();
    await expect
      .poll(() => image.evaluate((element: HTMLImageElement) => element.naturalWidth))
      .toBeGreaterThan(0);
    await chat.page.reload();
  }
});

test("a document from a tool is linked, also after a reload", async ({ chat }) => {
  await chat.open();
  await chat.send("Show me the handbook");
  for (const _ of ["live", "stored"]) {
    const link = chat.answer.getByRole("link", { name: /pdf/i }).last();
    await expect(link).toBeVisible();
    const url = new URL((await link.getAttribute("href")) ?? "", chat.page.url());
    const response = await chat.page.request.get(url.href);
    expect(response.headers()["content-type"]).toBe("application/pdf");
    expect((await response.body()).subarray(0, 5).toString()).toBe("%PDF-");
    await chat.page.reload();
  }
});

for (const transport of ["sse", "websocket"] as const) {
  test(`a chat without a title is listed and opened, over ${transport}`, async ({ chat }) => {
    await chat.open({ transport });
    const chooser = chat.page.waitForEvent("filechooser");
    await chat.page.getByRole("button", { name: "Attach files" }).click();
    const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("a note") };
    await (await chooser).setFiles(file);
    await chat.message.press("Enter");
    await chat.waitForEnd();
    const link = chat.page.getByRole("link", { name: /^Without a title/ }).first();
    await expect(link).toBeVisible();
    const { chats } = await (await chat.page.request.get(`${chat.server.url}/api/chats`)).json();
    expect(chats.map(({ title }: { title: unknown }) => title)).toContain(null);
    await chat.page.getByRole("button", { name: "New chat" }).click();
    await expect(chat.log.getByRole("article")).toHaveCount(0);
    await link.click();
    await expect(chat.log.getByRole("link", { name: file.name })).toBeVisible();
    await chat.page.reload();
    await expect(chat.log.getByRole("link", { name: file.name })).toBeVisible();
  });
}

test("an attached file is shown in the message, also after a reload", async ({ chat }) => {
  await chat.open();
  await chat.page.getByRole("button", { name: "Attach files" }).waitFor();
  const chooser = chat.page.waitForEvent("filechooser");
  await chat.page.getByRole("button", { name: "Attach files" }).click();
  await (await chooser).setFiles({
    name: "notes.txt",
    mimeType: "text/plain",
    buffer: Buffer.from("a note"),
  });
  await chat.send("Hello!");
  await chat.waitForEnd();
  const userMessage = chat.log.getByRole("article", { name: "You" });
  await expect(userMessage.getByRole("link")).toHaveCount(1);
  await chat.page.reload();
  await expect(userMessage.getByRole("link")).toHaveCount(1);
});

test("the browser provides its location", async ({ chat, context }) => {
  await context.grantPermissions(["geolocation"]);
  await context.setGeolocation({ latitude: 46.948, longitude: 7.447 });
  await chat.open();
  await chat.send("Where am I?");
  await expect(chat.answer).toContainText("Your browser has answered");
  await expect(chat.tool("Share your location")).toContainText("done");
  await chat.waitForEnd();
});

test("a chat is renamed, found and deleted", async ({ chat }) => {
  await chat.open();
  await chat.send("Hello! What can you do?");
  await chat.waitForEnd();
  const name = `Chat ${Date.now()}`;
  await chat.page
    .getByRole("button", { name: /^Rename or delete: Hello/ })
    .first()
    .click();
  const dialog = chat.page.getByRole("dialog");
  await dialog.getByRole("textbox").fill(name);
  await dialog.getByRole("button", { name: /save|rename/i }).click();
  await expect(chat.page.getByRole("link", { name })).toBeVisible();
  await chat.page.getByRole("searchbox", { name: "Search chats" }).fill(name);
  await expect(chat.page.getByRole("list", { name: "Chats" }).getByRole("listitem")).toHaveCount(1);
  await chat.page.getByRole("button", { name: `Rename or delete: ${name}` }).click();
  await dialog
    .getByRole("button", { name: /delete/i })
    .first()
    .click();
  await dialog
    .getByRole("button", { name: /delete/i })
    .last()
    .click({ trial: false });
  await expect(chat.page.getByRole("link", { name })).toHaveCount(0);
});

for (const transport of ["sse", "websocket"] as const) {
  test(`an edited message gets a new answer, over ${transport}`, async ({ chat }) => {
    await chat.open({ transport });
    await chat.send("Hello! What can you do?");
    await chat.waitForEnd();
    await chat.log.getByRole("button", { name: "Edit your message" }).click();
    await chat.log.getByRole("textbox", { name: "Edit your message" }).fill("Why is the sky blue?");
    await expect(chat.log.getByText("This replaces the answer.")).toBeVisible();
    await chat.log.getByRole("button", { name: "Send" }).click();
    await expect(chat.answer).toContainText("Air scatters blue light");
    await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
    await chat.waitForEnd();
  });
}

test("an answer is regenerated", async ({ chat }) => {
  await chat.open();
  await chat.send("Hello! What can you do?");
  await chat.waitForEnd();
  await chat.answer.getByRole("button", { name: "Answer again" }).click();
  await expect(chat.answer).toContainText("I can look up the weather");
  await chat.waitForEnd();
  await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(1);
});

test("an approval is decided after the transport has changed", async ({ chat }) => {
  await chat.open({ transport: "sse" });
  await chat.send("Search the database for users");
  await expect(chat.card("Search the customer database")).toBeVisible();
  await chat.page.getByRole("button", { name: "Developer tools" }).click();
  await chat.page.getByRole("radio", { name: "WebSocket" }).check();
  await chat.page.getByRole("button", { name: "Close the developer tools" }).click();
  await chat.approve("Search the customer database");
  await expect(chat.answer).toContainText("That was the search.");
  await chat.waitForEnd();
});
