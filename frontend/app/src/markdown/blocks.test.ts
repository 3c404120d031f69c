import type { Nodes } from "mdast";
import { expect, test } from "vitest";
import { type Block, MAX_LENGTH, type ParsedText, splitBlocks } from "./blocks.ts";
import { parseMarkdown } from "./parse-markdown.ts";
import { collectDefinitions, NO_DEFINITIONS, resolveBlock } from "./references.ts";

const TEXT = [
  "# A title\n\nFirst words of\none paragraph.\n\n",
  "1. one\n\n2. two\n   - inner\n\n   more of two\n\n",
  "Before code:\n```js\nlet a = 1;\n\nlet b = 2;\n```\nAfter code.\n\n",
  "| a | b |\n| - | - |\n| 1 | 2 |\n\n> a quote\n\n    indented\n\n    more\n\nThe end.",
].join("");

const blocksOf = ({ finished, open }: ParsedText): readonly Block[] => [...finished, ...open];

test("a text is split into its top-level blocks", () => {
  expect(blocksOf(splitBlocks(TEXT)).map(({ source }) => source)).toEqual([
    "# A title",
    "First words of\none paragraph.",
    "1. one\n\n2. two\n   - inner\n\n   more of two",
    "Before code:",
    "```js\nlet a = 1;\n\nlet b = 2;\n```",
    "After code.",
    "| a | b |\n| - | - |\n| 1 | 2 |",
    "> a quote",
    "    indented\n\n    more",
    "The end.",
  ]);
});

test("finished blocks are reused, and only the last block is parsed again", () => {
  const before = splitBlocks("One.\n\nTwo.\n\nThree.\n\nFo");
  const after = splitBlocks("One.\n\nTwo.\n\nThree.\n\nFour.", before);
  expect(before.finished).toHaveLength(2);
  expect(after.finished[0]).toBe(before.finished[0]);
  expect(after.finished[1]).toBe(before.finished[1]);
  expect(blocksOf(after).at(-1)?.source).toBe("Four.");
});

test("a text that does not continue the previous one is split from the beginning", () => {
  const after = splitBlocks("Other.\n\nWords.", splitBlocks("One.\n\nTwo.\n\nThree."));
  expect(blocksOf(after).map(({ source }) => source)).toEqual(["Other.", "Words."]);
});

test.each([
  ["```py\nx = 1\n```\n", { language: "py", code: "x = 1" }],
  ["```py\r\nx = 1\r\n\r\ny\r\n```\r\n", { language: "py", code: "x = 1\r\n\r\ny" }],
  ["```\nx = 1", { language: "", code: "x = 1" }],
  ["~~~~ a b\n~~~\n~~~~", { language: "a", code: "~~~" }],
  ["```", { language: "", code: "" }],
  ["    indented\n\n    more", { language: "", code: "indented\n\nmore" }],
])("%j is a block of code", (text, expected) => {
  expect(blocksOf(splitBlocks(text))).toMatchObject([{ kind: "code", ...expected }]);
});

test("a block over the limit is not parsed, and what follows it is", () => {
  const word = "x".repeat(MAX_LENGTH + 5);
  const blocks = blocksOf(splitBlocks(`${word}\n\n*After*`));
  expect(blocks.map(({ kind }) => kind)).toEqual(["plain", "node"]);
  expect(blocks[0]?.source.trim() === word).toBe(true);
});

test("a large streaming block is parsed at intervals, and the text after it is kept", () => {
  const list = "- one item of a list\n".repeat(300);
  const first = splitBlocks(list, undefined, { isStreaming: true });
  const second = splitBlocks(`${list}- mo`, first, { isStreaming: true });
  expect(second.open).toBe(first.open);
  expect(second.text.slice(second.openEnd)).toBe("- mo");
  expect(blocksOf(splitBlocks(second.text, second))).toEqual(blocksOf(splitBlocks(second.text)));
});

/** Numbers from 0 to 1, the same for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const PIECES = [
  ..."# Head|words|two words|- item|1. item|2) item|> quote|    indented|\tcode|```js|```|~~~|~~~~".split(
    "|",
  ),
  ...[
    "| a | b |",
    "| - | - |",
    "---",
    "===",
    "***",
    "<div>",
    "<!-- note",
    "-->",
    "<b>x</b>",
    "[a]",
  ],
  ...["[a]: https://a.example", '"title', 'end"', "[^1]", "[^1]: note", "[^2]: other", "[b]: <x>"],
  ...[
    "\\(a\\)",
    "\\[",
    "\\]",
    "$$",
    "$$ x $$",
    "**bold",
    "bold**",
    "`code`",
    "`",
    "- [ ] task",
    "  more",
  ],
  ...[
    "\u2028",
    "\u0085",
    "\u000b",
    "x\u2028y",
    "مرحبا",
    "😀",
    "\\",
    "&amp;",
    "https://a.example",
    "  ",
    "+",
  ],
];
const ENDINGS = [
  "\n",
  "\n\n",
  "\r\n",
  "\r\n\r\n",
  "\r",
  "\r\r",
  "\n \n",
  " ",
  "",
  "\n    ",
  "\n   ",
];

function randomText(next: () => number): string {
  const pick = (values: readonly string[]) => values[Math.floor(next() * values.length)] ?? "";
  const length = 1 + Math.floor(next() * 14);
  return Array.from({ length }, () => pick(PIECES) + pick(ENDINGS)).join("");
}

/** A tree without positions, in which code has one kind of line ending. */
function withoutPositions(node: Nodes): unknown {
  const { position: _, ...rest } = node as Nodes & { position?: unknown };
  return "children" in rest ? { ...rest, children: rest.children.map(withoutPositions) } : rest;
}

function treeOf(parsed: ParsedText): unknown[] {
  const blocks = blocksOf(parsed);
  const definitions = collectDefinitions(blocks, NO_DEFINITIONS);
  return blocks.map((block) =>
    block.kind === "node"
      ? withoutPositions(resolveBlock(block, definitions))
      : block.kind === "code" && { type: "code", lang: block.language, value: block.code },
  );
}

function wholeTree(text: string): unknown[] {
  return parseMarkdown(text).children.map((node) =>
    node.type === "code"
      ? { type: "code", lang: node.lang ?? "", value: node.value }
      : withoutPositions(node),
  );
}

test("each text that arrives in any pieces is parsed like the complete text", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const next = random(seed);
    const text = randomText(next);
    let parsed = splitBlocks("");
    for (let end = 0; end < text.length; end += 1 + Math.floor(next() * 9)) {
      parsed = splitBlocks(text.slice(0, end), parsed, { isStreaming: true });
    }
    expect(treeOf(splitBlocks(text, parsed)), JSON.stringify(text)).toEqual(wholeTree(text));
  }
});
