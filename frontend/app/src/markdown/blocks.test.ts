import { expect, test } from "vitest";
import { cut, definitions, fenced } from "./blocks.ts";

const STORY = [
  "# A title\n\nFirst words of\none paragraph.\n\n",
  "1. one\n\n2. two\n   - inner\n\n   more of two\n\n",
  "Before code:\n```js\nlet a = 1;\n\nlet b = 2;\n```\nAfter code.\n\n",
  "| a | b |\n| - | - |\n| 1 | 2 |\n\n> a quote\n\n    indented\n\nThe end.",
].join("");

test("a text is cut at blank lines; lists, tables and fences stay whole", () => {
  expect(cut(STORY).blocks.map((block) => block.trim())).toEqual([
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

test.each([1, 2, 3, 7])("a text that grows by %i is cut as if it had come at once", (step) => {
  let last = cut("");
  for (let end = 0; end < STORY.length + step; end += step) last = cut(STORY.slice(0, end), last);
  expect(last.blocks).toEqual(cut(STORY).blocks);
});

test("what was cut for certain is not cut again", () => {
  const before = cut("One.\n\nTwo.\n\nThree.\n\nFo");
  const after = cut("One.\n\nTwo.\n\nThree.\n\nFour.", before);
  expect(after.blocks.slice(0, 2)).toEqual(before.blocks.slice(0, 2));
  expect(after.blocks.at(-1)).toBe("Four.");
});

test("a text that does not go on from the last one is cut anew", () => {
  expect(cut("Other.\n\nWords.", cut("One.\n\nTwo.\n\nThree.")).blocks).toEqual([
    "Other.\n\n",
    "Words.",
  ]);
});

test("a text with footnotes is one block, for they are numbered over all of it", () => {
  expect(cut("One[^1].\n\nTwo.\n\n[^1]: Note").blocks).toHaveLength(1);
});

test("addresses that a text defines are known to all of its blocks", () => {
  expect(definitions("See [a].\n\n[a]: https://a.example\n[b]: https://b.example")).toBe(
    "[a]: https://a.example\n[b]: https://b.example",
  );
});

test.each([
  ["```py\nx = 1\n```\n", { language: "py", code: "x = 1" }],
  ["```\nx = 1", { language: "", code: "x = 1" }],
  ["~~~~ a b\n~~~\n~~~~", { language: "a", code: "~~~" }],
  ["```", { language: "", code: "" }],
])("%j is a fence", (block, expected) => {
  expect(fenced(block)).toEqual(expected);
});

test.each(["`code`", "``` not ` a fence\nx", "text\n```\nx\n```"])("%j is none", (block) => {
  expect(fenced(block)).toBeUndefined();
});
