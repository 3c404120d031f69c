import { accessibilityViolations } from "./accessibility.ts";
import { expect, test } from "./fixtures.ts";

for (const transport of ["sse", "websocket"] as const) {
  test(`edited lists, objects and dates are what runs, ${transport}`, async ({ chat, server }) => {
    await chat.open({ transport });
    const before = await server.effects();
    await chat.send("Order paper for the office");
    const card = chat.card("Order supplies");
    await expect(card.getByRole("row", { name: "items[].gift", exact: false }).last()).toHaveText(
      "items[].giftfalse (default of the tool, for each item without it)",
    );
    await card.getByRole("button", { name: "Edit" }).click();
    const form = card.getByRole("group", { name: "Edit the arguments" });
    const group = (name: string) => form.getByRole("group", { name, exact: true });
    await expect(group("items 1").getByRole("textbox", { name: "article" })).toBeFocused();
    await group("items 1").getByRole("textbox", { name: "count" }).fill("2.5");
    await group("address").getByRole("textbox", { name: "city" }).fill("Basel");
    await form.getByLabel("delivery").fill("2026-12-11");
    await expect(form).toContainText("Friday, 11 December 2026");
    await group("notify").getByRole("button", { name: "Remove: notify 1" }).click();
    await group("notify").getByRole("button", { name: "Add an item" }).click();
    await expect(group("notify").getByRole("textbox", { name: "notify 2" })).toBeFocused();
    await chat.page.keyboard.type("eve@example.org");
    await form.getByRole("button", { name: "Set a value: shipping" }).click();
    await form.getByRole("combobox", { name: "shipping" }).selectOption("express");
    await group("items 2").getByRole("checkbox", { name: "gift" }).uncheck();
    const approve = form.getByRole("button", { name: "Approve with changes" });
    await approve.click();
    await expect(form).toContainText("Type a whole number.");
    await expect(group("items 1").getByRole("textbox", { name: "count" })).toBeFocused();
    expect(await accessibilityViolations(chat.page)).toEqual([]);
    expect(await server.effects()).toEqual(before);
    await group("items 1").getByRole("textbox", { name: "count" }).fill("25");
    await approve.click();
    await expect(chat.answer).toContainText("The order is settled");
    const [order, ...others] = (await server.effects()).slice(before.length);
    expect(others).toEqual([]);
    expect(JSON.parse(order ?? "").args).toEqual({
      items: [
        { article: "Paper A4", count: 25, gift: false },
        { article: "Pencils", count: 100, gift: false },
      ],
      address: { street: "Aarstrasse 1", city: "Basel", floor: null },
      delivery: "2026-12-11",
      shipping: "express",
      notify: ["grace@example.org", "eve@example.org"],
    });
    const changes = chat.tool("Order supplies").getByRole("list", { name: "Changes" });
    await expect(changes).toContainText("items[0].count: 20 → 25");
    await expect(changes).toContainText("address.city: Bern → Basel");
    await expect(changes).toContainText("shipping: nothing → express");
  });
}
