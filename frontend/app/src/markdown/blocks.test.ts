import { expect, test } from "vitest";
import { linkDefinitions, parseFence, splitBlocks } from "./blocks.ts";

const TEXT = [
  "# A title\n\nFirst words of\none paragraph.\n\n",
  "1. one\n\n2. two\n   - inner\n\n   more of two\n\n",
  "Before code:\n```js\nlet a = 1;\n\nlet b = 2;\n```\nAfter code.\n\n",
  "| a | b |\n| - | - |\n| 1 | 2 |\n\n> a quote\n\n    indented\n\nThe end.",
].join("");

test("a text is split at blank lines, but not in lists, tables and fences", () => {
  expect(splitBlocks(TEXT).blocks.map((block) => block.trim())).toEqual([
    "# A title",
    "First words of\none paragraph.",
    "1. one\n\n2. two\n   - inner\n\n   more of two",
    "Before code:",
    "```js\nlet a = 1;\n\nlet b = 2;\n```",
    "After code.",
    "| a | b |\n| - | - |\n| 1 | 2 |",
    "> a quote",
    "indented",
    "The end.",
  ]);
});

test.each([1, 2, 3, 7])(
  "a text that grows by %i characters is split like the complete text",
  (step) => {
    let last = splitBlocks("");
    for (let end = 0; end < TEXT.length + step; end += step)
      last = splitBlocks(TEXT.slice(0, end), last);
    expect(last.blocks).toEqual(splitBlocks(TEXT).blocks);
  },
);

test("finished blocks are reused", () => {
  const before = splitBlocks("One.\n\nTwo.\n\nThree.\n\nFo");
  const after = splitBlocks("One.\n\nTwo.\n\nThree.\n\nFour.", before);
  expect(after.blocks.slice(0, 2)).toEqual(before.blocks.slice(0, 2));
  expect(after.blocks.at(-1)).toBe("Four.");
});

test("a text that does not continue the previous one is split from the beginning", () => {
  expect(splitBlocks("Other.\n\nWords.", splitBlocks("One.\n\nTwo.\n\nThree.")).blocks).toEqual([
    "Other.\n\n",
    "Words.",
  ]);
});

test("a text with footnotes is one block", () => {
  expect(splitBlocks("One[^1].\n\nTwo.\n\n[^1]: Note").blocks).toHaveLength(1);
});

test("link reference definitions of a text are collected", () => {
  expect(linkDefinitions("See [a].\n\n[a]: https://a.example\n[b]: https://b.example")).toBe(
    "[a]: https://a.example\n[b]: https://b.example",
  );
});

test.each([
  ["```py\nx = 1\n```\n", { language: "py", code: "x = 1" }],
  ["```\nx = 1", { language: "", code: "x = 1" }],
  ["~~~~ a b\n~~~\n~~~~", { language: "a", code: "~~~" }],
  ["```", { language: "", code: "" }],
])("%j is a fenced block", (block, expected) => {
  expect(parseFence(block)).toEqual(expected);
});

test.each(["`code`", "``` not ` a fence\nx", "text\n```\nx\n```"])(
  "%j is not a fenced block",
  (block) => {
    expect(parseFence(block)).toBeUndefined();
  },
);
