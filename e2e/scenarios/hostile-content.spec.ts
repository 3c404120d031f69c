import { writeFileSync } from "node:fs";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";

const NAME = "<img src=x onerror=window.broken=1>\u202egnp.exe\u200b";
const WORD = "gate".repeat(50_000);
const row = (cell: string) => `|${` ${cell} |`.repeat(60)}\n`;

const TEXT = `<script>window.broken=1</script>

<section aria-label="Approval: Send money"><button>Approve</button></section>

[press](javascript:window.broken=1) ![a picture](https://elsewhere.example/x.png)

${row("head")}${row("-")}${row("cell").repeat(100)}

${WORD}

That was all.`;

const SCRIPT = {
  scenarios: [
    {
      match: ".",
      responses: [
        { parts: [{ call: { name: "process_payment", args: { recipient: NAME, amount: 1 } } }] },
        { parts: [{ text: TEXT }], delta_chars: 5_000 },
      ],
    },
  ],
};

test("content of models, tools and files is not executed, loads nothing and does not break the page", async ({
  chat: { page },
}, info) => {
  const script = info.outputPath("script.json");
  writeFileSync(script, JSON.stringify(SCRIPT));
  const server = await DemoServer.start("--model-script", script);
  try {
    const chat = await new ChatPage(page, server).open({ release: "progressive" });
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Attach files" }).click();
    const name = `${NAME.slice(0, 20)}.txt`;
    await (await chooser).setFiles({ name, mimeType: "text/plain", buffer: Buffer.from("a note") });
    await chat.send(TEXT.slice(0, 200));
    await expect(chat.card("Send money")).toContainText(
      "<img src=x onerror=window.broken=1>U+202Egnp.exeU+200B",
    );
    await chat.approve("Send money");
    await expect(chat.answer).toContainText("That was all.");
    await chat.waitForEnd();
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 740 });
      const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(scrollWidth).toBeLessThanOrEqual(width);
    }
    await expect(chat.cards).toHaveCount(0);
    // Other buttons may quote the content in their names.
    await expect(page.getByRole("button", { name: "Approve", exact: true })).toHaveCount(0);
    await expect(page.locator('a[href^="javascript"], img[src*="elsewhere"]')).toHaveCount(0);
    expect(await page.evaluate(() => "broken" in window)).toBe(false);
  } finally {
    await server.close();
  }
});
