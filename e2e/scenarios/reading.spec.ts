import { writeFileSync } from "node:fs";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";

const TEXT = [
  "First line\r\nsecond line\r\n\r\nAfter a carriage\rreturn\r\rThird\u2028separated paragraph.\r\n\r\n",
  "A note[^1], again[^1] and another[^long].\n\n",
  "Inline \\(a^2 + b\\) and\n\n\\[\n\\frac{1}{2}\n- c\n\\]\n\n",
  "- [x] bought\n- [ ] paid\n\n",
  "A program:\n\n    indented one\n\n    indented two\n\n",
  "```python\r\ndef pay(amount):\r\n\r\n    return amount  # all of it\r\n```\r\n\r\n",
  `| ${"column | ".repeat(30)}\n| ${"- | ".repeat(30)}\n| ${"cell | ".repeat(30)}\n\n`,
  "مرحبا بالعالم\n\n[a link](https://a.example/x) and <b>no tag</b>\n\n",
  "[^1]: The first note.\n[^long]: The *second* note.\n\n    With a paragraph.\n\nThe end.",
].join("");

/** What a person reads, in order. */
const READ = [
  ...["First line", "second line", "After a carriage", "return", "Third", "separated paragraph."],
  ...[
    "A note",
    "again",
    "and another",
    "Inline",
    "bought",
    "paid",
    "A program:",
    "indented one",
    "indented two",
  ],
  ...["def pay(amount):", "return amount", "# all of it", "column", "cell", "مرحبا بالعالم"],
  ...[
    "a link",
    "<b>no tag</b>",
    "The end.",
    "The first note.",
    "The",
    "second",
    "With a paragraph.",
  ],
];

for (const transport of ["sse", "websocket"] as const) {
  test(`a text that arrives character by character is read completely, live and stored, ${transport}`, async ({
    chat: { page },
  }, info) => {
    const script = info.outputPath("script.json");
    const responses = [{ parts: [{ text: TEXT }], delta_chars: 1 }];
    writeFileSync(script, JSON.stringify({ scenarios: [{ match: ".", responses }] }));
    const server = await DemoServer.start("--model-script", script);
    try {
      const chat = await new ChatPage(page, server).open({ transport, release: "progressive" });
      await chat.send("Write");
      await chat.waitForEnd();
      const texts: string[] = [];
      for (const state of ["live", "stored"]) {
        const text = chat.answer.locator(".markdown");
        await expect(text.locator("math")).toHaveCount(2);
        await expect(text.locator("pre").first()).toHaveText("indented one\n\nindented two");
        await expect(text.locator(".hljs-keyword").first()).toHaveText("def");
        const visible = await text.innerText();
        let position = 0;
        for (const words of READ) {
          const found = visible.indexOf(words, position);
          expect(found, `${state}: ${words} in ${visible.slice(position)}`).toBeGreaterThan(-1);
          position = found + words.length;
        }
        texts.push(visible.replace(/\s+/g, " "));
        await text.getByRole("link", { name: "Footnote 2" }).click();
        await expect(text.locator("li:target")).toContainText("The second note.");
        await text.getByRole("link", { name: "Back to reference 2" }).click();
        await expect(text.getByRole("link", { name: "Footnote 2" })).toBeInViewport();
        // Each paragraph has the direction of its text, and a wide table scrolls by itself.
        const arabic = text.getByText("مرحبا بالعالم");
        expect(await arabic.evaluate((element) => getComputedStyle(element).direction)).toBe("rtl");
        const table = text.getByRole("group", { name: "Table" });
        expect(
          await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
        ).toBe(true);
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect(overflow).toBe(0);
        if (state === "live") expect(await accessibilityViolations(page)).toEqual([]);
        await page.reload();
        await chat.waitForEnd();
      }
      expect(texts[0]).toBe(texts[1]);

      // The same text again: its footnotes have their own ids.
      await chat.send("Write it again");
      await chat.waitForEnd();
      await expect(chat.log.locator("math")).toHaveCount(4);
      const ids = await page
        .locator("[id]")
        .evaluateAll((elements) => elements.map(({ id }) => id).filter((id) => id !== ""));
      expect(ids).toHaveLength(new Set(ids).size);
      await chat.answer.getByRole("link", { name: "Footnote 2" }).click();
      await expect(chat.answer.locator("li:target")).toContainText("The second note.");
    } finally {
      await server.close();
    }
  });
}

const weather = (city: string) => ({ call: { name: "get_weather", args: { city } } });

for (const transport of ["sse", "websocket"] as const) {
  test(`finished calls in a row are one line that opens and closes, and others stay outside, ${transport}`, async ({
    chat: { page },
  }, info) => {
    const script = info.outputPath("script.json");
    const chart = { call: { name: "draw_chart", args: { title: "Degrees", values: [18, 34] } } };
    const responses = [
      { parts: [weather("Bern"), weather("Cairo")] },
      { parts: [weather("London")] },
      { parts: [weather("Atlantis")] },
      { parts: [weather("Tokyo"), chart] },
      { parts: [{ text: "It is warm." }] },
      { parts: [weather("Bern"), weather("Tokyo"), chart] },
      { parts: [{ call: { name: "search_database", args: { query: "guides" } } }] },
      { parts: [{ text: "That is all." }] },
    ];
    // A text ends an answer: the second message goes on after it.
    const scenarios = [
      { match: "first", responses: responses.slice(0, 5) },
      { match: "second", responses: responses.slice(5) },
    ];
    writeFileSync(script, JSON.stringify({ scenarios }));
    const server = await DemoServer.start("--model-script", script);
    try {
      const chat = await new ChatPage(page, server).open({ transport });
      await chat.send("first");
      await chat.waitForEnd();
      const rows = chat.answer.getByRole("region", { name: /^Tool: / });
      const run = chat.answer.getByRole("button", { name: /tool calls/ });
      for (const state of ["live", "stored"]) {
        await expect(run, state).toHaveText("3 tool calls: Look up the weather");
        // The failed call says why without a click, and two calls are no run.
        await expect(rows).toHaveCount(3);
        await expect(rows.first()).toContainText("There is no weather station in Atlantis.");
        await expect(rows.first()).toContainText("failed");
        await run.click();
        await expect(run).toHaveAttribute("aria-expanded", "true");
        await expect(rows).toHaveCount(6);
        await expect(rows).toContainText(["Bern", "Cairo", "London", "Atlantis", "Tokyo", ""]);
        await rows.first().getByRole("button", { name: "Details" }).click();
        await expect(rows.first()).toContainText("sunny");
        expect(await accessibilityViolations(page)).toEqual([]);
        await run.press("Enter");
        await expect(run).toHaveAttribute("aria-expanded", "false");
        await expect(rows).toHaveCount(3);
        await page.reload();
        await chat.waitForEnd();
      }

      // An approval is never folded, neither while it waits nor afterwards.
      await chat.send("second");
      await chat.approve("Search the customer database");
      await chat.waitForEnd();
      await expect(run).toHaveText("3 tool calls: Look up the weather, Draw a chart");
      await expect(rows).toHaveCount(1);
      await expect(rows).toContainText("Search the customer database");
    } finally {
      await server.close();
    }
  });
}
