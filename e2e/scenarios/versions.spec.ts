import { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

/** The status of a request of the page, such as `DELETE`, for its chat. */
function statusOf({ page, query }: ChatPage, path: string, method = "GET"): Promise<number> {
  const url = `api/chats/${new URLSearchParams(query).get("chat")}${path}`;
  return page.evaluate(async ([url, method]) => (await fetch(url, { method })).status, [
    url,
    method,
  ] as const);
}

for (const transport of ["sse", "websocket"] as const) {
  test(`what an edit and another answer replaced is readable over ${transport}, until the chat is deleted`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    await chat.send("Hello! What can you do?");
    await chat.waitForEnd();
    await expect(chat.log.getByText(/^Version/)).toHaveCount(0);
    await chat.log.getByRole("button", { name: "Edit your message" }).click();
    await chat.log.getByRole("textbox", { name: "Edit your message" }).fill("Why is the sky blue?");
    await chat.log.getByRole("button", { name: "Send" }).click();
    await expect(chat.answer).toContainText("Air scatters blue light");
    await chat.waitForEnd();
    await expect(chat.log.getByText("Version 2 of 2")).toBeVisible();
    await chat.answer
      .getByRole("button", { name: "Answer again: This replaces the answer." })
      .click();
    await expect(chat.log.getByText("Version 3 of 3")).toBeVisible();

    await chat.page.reload();
    await expect(chat.log.getByText("Version 3 of 3")).toBeVisible();
    const [loaded] = await Promise.all([
      chat.page.waitForResponse(/\/messages\/[^/]+\/versions\/2$/),
      chat.log.getByRole("button", { name: "Earlier version" }).click(),
    ]);
    const second = chat.log.getByRole("region", { name: "Version 2 of 3, replaced" });
    await expect(second).toContainText("Air scatters blue light");
    await chat.log.getByRole("button", { name: "Earlier version" }).click();
    const first = chat.log.getByRole("region", { name: "Version 1 of 3, replaced" });
    await expect(first).toContainText("Hello! What can you do?");
    await expect(first).toContainText("I can look up the weather");
    await expect(first.getByRole("button")).toHaveCount(0);
    await chat.log.getByRole("button", { name: "Later version" }).click();
    await chat.log.getByRole("button", { name: "Later version" }).click();
    await expect(chat.log.getByRole("region", { name: /replaced$/ })).toHaveCount(0);

    const path = new URL(loaded.url()).pathname.replace(/^.*(?=\/messages\/)/, "");
    expect(await statusOf(chat, path)).toBe(200);
    expect(await statusOf(chat, "", "DELETE")).toBe(204);
    expect(await statusOf(chat, path)).toBe(404);
  });

  test(`an approval of a replaced answer is closed over ${transport}`, async ({ chat, server }) => {
    const before = await server.effects();
    await chat.open({ transport });
    await chat.send("Pay Ada 50 euros");
    await expect(chat.card("Send money")).toBeVisible();
    await chat.log.getByRole("button", { name: "Edit your message" }).click();
    await chat.log.getByRole("textbox", { name: "Edit your message" }).fill("Hello!");
    await chat.log.getByRole("button", { name: "Send" }).click();
    await expect(chat.log.getByText("Version 2 of 2")).toBeVisible();
    await chat.log.getByRole("button", { name: "Earlier version" }).click();
    const replaced = chat.log.getByRole("region", { name: "Version 1 of 2, replaced" });
    await expect(replaced.getByRole("region", { name: "Tool: Send money" })).toContainText(
      "withdrawn",
    );
    await expect(chat.cards).toHaveCount(0);
    expect(await server.effects()).toEqual(before);
  });
}

for (const transport of ["sse", "websocket"] as const) {
  for (const release of ["deferred", "progressive"] as const) {
    test(`neither an edit nor another answer is offered once a tool has run, ${release} over ${transport}`, async ({
      chat,
      context,
    }) => {
      await chat.open({ transport, release });
      await chat.send("Hello!");
      await chat.waitForEnd();
      await chat.send("Find the inactive users, then archive them");
      await expect(chat.card("Search the customer database")).toBeVisible();
      const page = await context.newPage();
      const other = await new ChatPage(page, chat.server).open({ transport, release }, chat.query);
      await expect(other.card("Search the customer database")).toBeVisible();
      const edits = ({ log }: ChatPage) => log.getByRole("button", { name: "Edit your message" });
      await expect(edits(chat)).toHaveCount(2);
      await other.approve("Search the customer database");
      // The search has run; its result is held back as long as the update waits.
      for (const tab of [chat, other]) {
        await expect(tab.card("Change the customer database")).toBeVisible();
        await expect(edits(tab)).toHaveCount(0);
      }
      await chat.page.reload();
      await expect(chat.card("Change the customer database")).toBeVisible();
      await expect(edits(chat)).toHaveCount(0);
      await chat.deny("Change the customer database");
      for (const tab of [chat, other]) {
        await tab.waitForEnd();
        await expect(tab.answer.getByRole("button", { name: "Answer again" })).toBeDisabled();
        await expect(edits(tab)).toHaveCount(0);
      }
    });
  }
}
