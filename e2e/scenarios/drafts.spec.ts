import type { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

const NOTE = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("a note") };

async function attach(chat: ChatPage): Promise<void> {
  const chooser = chat.page.waitForEvent("filechooser");
  await chat.page.getByRole("button", { name: "Attach files" }).click();
  await (await chooser).setFiles(NOTE);
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a draft survives another chat and a reload, without its files, ${transport}`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    await chat.send("Hello! What can you do?");
    await chat.waitForEnd();
    await chat.message.fill("a first draft");
    await attach(chat);
    await chat.page.getByRole("button", { name: "New chat" }).click();
    await expect(chat.message).toHaveValue("");
    await chat.message.fill("another draft");
    await chat.page.goBack();
    await expect(chat.message).toHaveValue("a first draft");
    await expect(chat.page.getByText("attach them again")).toBeVisible();
    await chat.page.reload();
    await expect(chat.message).toHaveValue("a first draft");
    await chat.page.getByRole("button", { name: "New chat" }).click();
    await expect(chat.message).toHaveValue("");
    await chat.page.goBack();
    await expect(chat.message).toHaveValue("a first draft");
    await chat.message.press("Enter");
    await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(2);
    await chat.waitForEnd();
    await chat.page.reload();
    await expect(chat.message).toHaveValue("");
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a refused message returns to the composer with its files, ${transport}`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    // The server accepts 100,000 characters.
    const text = "long ".repeat(20_100);
    await attach(chat);
    await chat.message.fill(text);
    await chat.message.press("Enter");
    await expect(chat.alert).toBeVisible();
    await expect(chat.message).toHaveValue(text);
    await expect(chat.page.getByRole("list", { name: "Attached files" })).toContainText(NOTE.name);
    await expect(chat.log.getByRole("article")).toHaveCount(0);
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a failed upload is one sentence, and the message stays in the composer, ${transport}`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    await chat.page.route("**/files?*", (route) => route.abort());
    await attach(chat);
    await chat.message.fill("Read this");
    await chat.message.press("Enter");
    await expect(chat.alert).toContainText("The server cannot be reached");
    await expect(chat.message).toHaveValue("Read this");
    await expect(chat.page.getByRole("list", { name: "Attached files" })).toContainText(NOTE.name);
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`an edited message keeps its files, ${transport}`, async ({ chat }) => {
    await chat.open({ transport });
    await attach(chat);
    await chat.send("Hello!");
    await chat.waitForEnd();
    await chat.log.getByRole("button", { name: "Edit your message" }).click();
    await chat.log.getByRole("textbox", { name: "Edit your message" }).fill("Why is the sky blue?");
    await chat.log.getByRole("button", { name: "Send" }).click();
    await expect(chat.answer).toContainText("Air scatters blue light");
    await chat.waitForEnd();
    const message = chat.log.getByRole("article", { name: "You" });
    await expect(message.getByRole("link", { name: NOTE.name })).toBeVisible();
    await chat.page.reload();
    await expect(message.getByRole("link", { name: NOTE.name })).toBeVisible();
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`a failed deletion is reported beside its button, ${transport}`, async ({ chat }) => {
    await chat.open({ transport });
    await chat.send("Hello! What can you do?");
    await chat.waitForEnd();
    await chat.page.route("**/api/chats/*", (route) =>
      route.request().method() === "DELETE" ? route.abort() : route.continue(),
    );
    await chat.page
      .getByRole("button", { name: /^Rename or delete: Hello/ })
      .first()
      .click();
    const dialog = chat.page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete for good" }).click();
    await expect(dialog.getByRole("alert")).toContainText("The server cannot be reached");
    await expect(dialog.getByRole("textbox", { name: "Title" })).toHaveAccessibleDescription("");
  });
}
