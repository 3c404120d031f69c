import { accessibilityViolations } from "./accessibility.ts";
import { expect, test } from "./fixtures.ts";

for (const transport of ["sse", "websocket"] as const) {
  test(`a tool reads the answer that its approver has filled in, over ${transport}`, async ({
    chat,
    server,
  }) => {
    await chat.open({ transport });
    const before = await server.effects();
    await chat.send("Request five days of leave");
    const card = chat.card("Request leave");
    await expect(card).toContainText("How many of these days are granted?");
    const shown = card.getByRole("table", { name: "Answer" });
    await expect(shown.getByRole("row", { name: /^granted_days/ })).toContainText("5");
    await card.getByRole("button", { name: "Edit", exact: true }).click();
    const answer = card.getByRole("group", { name: "Edit the answer" });
    const granted = answer.getByRole("textbox", { name: "granted_days" });
    await granted.fill("three");
    const approve = card.getByRole("button", { name: "Approve with changes" });
    await approve.click();
    await expect(granted).toBeFocused();
    await expect(answer).toContainText("Type a number in digits");
    expect(await accessibilityViolations(chat.page)).toEqual([]);
    expect(await server.effects()).toEqual(before);
    await granted.fill("3");
    await answer.getByRole("textbox", { name: "note" }).fill("Enjoy.");
    const argument = card.getByRole("group", { name: "Edit the arguments" });
    await argument.getByRole("textbox", { name: "days" }).fill("4");
    await approve.click();
    await expect(chat.answer).toContainText("The request is settled");
    await chat.waitForEnd();
    const [leave, ...others] = (await server.effects()).slice(before.length);
    expect(others).toEqual([]);
    expect(JSON.parse(leave ?? "").args).toEqual({ days: 4, granted_days: 3, note: "Enjoy." });

    const row = chat.tool("Request leave");
    const expectTrace = async () => {
      await expect(row).toContainText(
        /Approved by local, (?:\d+ \w+ \d{4}, )?\d\d:\d\d, with changes/,
      );
      const changes = row.getByRole("list", { name: "Changes" }).getByRole("listitem");
      await expect(changes).toHaveText([
        "days: 5 → 4",
        "answer.granted_days: 5 → 3",
        "answer.note: empty text → Enjoy.",
      ]);
    };
    await expectTrace();
    await chat.page.reload();
    await expectTrace();
  });
}
