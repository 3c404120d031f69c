import { expect, test } from "vitest";
import { hiddenIn, visibleJson, visibleName, visiblePieces } from "./visible-text.ts";

test.each([
  "plain",
  "Zürich, Ελλάδα, 東京, עברית, हिन्दी",
  "a line\nand\tanother",
  "❤️ 👨‍👩‍👧 👍🏽 🏳️‍🌈",
])("%j is shown as it is", (text) => {
  expect(visiblePieces(text)).toEqual([{ kind: "text", text }]);
});

test.each([
  ["\u202e", "U+202E"],
  ["\u2066", "U+2066"],
  ["\u200b", "U+200B"],
  ["\u200d", "U+200D"],
  ["\ufeff", "U+FEFF"],
  ["\u00ad", "U+00AD"],
  ["\u00a0", "U+00A0"],
  ["\u3164", "U+3164"],
  ["\u2800", "U+2800"],
  ["\ufe0f", "U+FE0F"],
  ["\u0000", "U+0000"],
  ["\u001b", "U+001B"],
  ["\r", "U+000D"],
  ["\u2028", "U+2028"],
  ["\u{e0041}", "U+E0041"],
  ["\ud800", "U+D800"],
])("%j is named", (character, name) => {
  expect(visiblePieces(`a${character}b`)).toEqual([
    { kind: "text", text: "a" },
    { kind: "hidden", name, count: 1 },
    { kind: "text", text: "b" },
  ]);
});

test("a run of the same character is counted", () => {
  expect(visiblePieces("\u200b\u200b\u200b")).toEqual([
    { kind: "hidden", name: "U+200B", count: 3 },
  ]);
});

test("a name is one line and says what is hidden in it", () => {
  expect(visibleName("pay\nnow\u202e")).toBe("pay now⟨U+202E⟩");
});

test("JSON stays what it is when hidden characters are escaped in it", () => {
  const value = { a: "x\u202ey\u200b\u200b", b: ["\u{e0041}", "❤️"] };
  const text = visibleJson(value);
  expect(text).toContain("x\\u202ey\\u200b\\u200b");
  expect(hiddenIn(text)).toEqual([]);
  expect(JSON.parse(text)).toEqual(value);
});
