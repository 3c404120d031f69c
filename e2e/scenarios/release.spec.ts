import { expect, test } from "./fixtures.ts";
import { observeTexts } from "./shown-texts.ts";

for (const transport of ["sse", "websocket"] as const) {
  test(`a page that was not set up shows each part when it happens, and takes none back, ${transport}`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    const texts = ["I prepare the payment", "The payment is settled"];
    const observed = await observeTexts(chat.page, texts);
    await chat.send("Pay Ada 50 euros");
    await expect(chat.card("Send money")).toBeVisible();
    await expect(chat.answer).toContainText("I prepare the payment");
    await chat.approve("Send money");
    await chat.waitForEnd();
    await expect(chat.answer).toContainText(/I prepare the payment.*Send money.*is settled/s);
    expect(await observed()).toEqual([texts, []]);
    const read = () => chat.answer.locator(".markdown").allInnerTexts();
    const live = await read();
    await chat.page.reload();
    await chat.waitForEnd();
    // The code that shows text may still load.
    await expect.poll(read).toEqual(live);
  });

  test(`the result of a call is readable while another one waits, ${transport}`, async ({
    chat,
  }) => {
    await chat.open({ transport });
    await chat.send("How is the weather in Bern? And pay the guide");
    await expect(chat.card("Send money")).toBeVisible();
    const row = chat.tool("Look up the weather");
    await expect(row.getByText("done", { exact: true })).toBeVisible();
    await row.getByRole("button", { name: "Details" }).click();
    await expect(row.getByRole("table", { name: "Result" })).toBeVisible();
    await chat.deny("Send money");
    await chat.waitForEnd();
  });
}

test("the settings of developers are in a drawer, whose code is loaded when it opens", async ({
  chat,
}) => {
  const { page } = chat;
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(request.url()));
  const code = () => loaded.filter((url) => /\/(?:developer-drawer|recording)-/.test(url));
  await chat.open();
  await chat.send("Hello!");
  await chat.waitForEnd();
  await expect(page.getByRole("radio")).toHaveCount(0);
  expect(code()).toEqual([]);
  await page.getByRole("button", { name: "Developer tools" }).click();
  const tools = page.getByRole("dialog", { name: "Developer tools" });
  await expect(tools.getByRole("radio", { name: "WebSocket" })).toBeVisible();
  await expect(tools.getByRole("combobox", { name: "Release" })).toHaveValue("progressive");
  expect(code()).not.toEqual([]);
});
