import { expect, test } from "vitest";
import {
  formatCount,
  invisibleCharacters,
  visibleJson,
  visibleName,
  visiblePieces,
} from "./visible-text.ts";

test.each([
  "plain",
  "Zürich, Ελλάδα, 東京, עברית, हिन्दी",
  "a line\nand\tanother",
  "❤️ 👨‍👩‍👧 👍🏽 🏳️‍🌈",
])("%j is visible", (text) => {
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
    { kind: "invisible", name, count: 1 },
    { kind: "text", text: "b" },
  ]);
});

test("a run of the same character is formatCount", () => {
  expect(visiblePieces("\u200b\u200b\u200b")).toEqual([
    { kind: "invisible", name: "U+200B", count: 3 },
  ]);
});

test("a name is on one line with the names of its invisible characters", () => {
  expect(visibleName("pay\nnow\u202e")).toBe("pay now⟨U+202E⟩");
});

test("JSON is equivalent after escaping its invisible characters", () => {
  const value = { a: "x\u202ey\u200b\u200b", b: ["\u{e0041}", "❤️"] };
  const text = visibleJson(value);
  expect(text).toContain("x\\u202ey\\u200b\\u200b");
  expect(invisibleCharacters(text)).toEqual([]);
  expect(JSON.parse(text)).toEqual(value);
});

test.each([
  [0, "0"],
  [999, "999"],
  [1000, "1,000"],
  [200_000, "200,000"],
  [1_234_567, "1,234,567"],
])("%d is formatted as %s", (number, text) => {
  expect(formatCount(number)).toBe(text);
});
