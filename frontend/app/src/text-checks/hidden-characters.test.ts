import { expect, test } from "vitest";
import { visibleJson, visibleName, visiblePieces } from "./hidden-characters.ts";

test.each([
  "plain",
  "Zürich, Ελλάδα, 東京, עברית, हिन्दी",
  "a line\nand\tanother",
  "❤️ 👨‍👩‍👧 👍🏽 🏳️‍🌈 1️⃣",
  "cafe\u0301, phở, ọ́, שָׁלוֹם, ที่",
])("%j is visible", (text) => {
  expect(visiblePieces(text)).toEqual([{ kind: "text", text }]);
});

test.each([
  ["bidi", "\u202e"],
  ["bidi", "\u2066"],
  ["bidi", "\u200f"],
  ["invisible", "\u200b"],
  ["invisible", "\u200d"],
  ["invisible", "\ufeff"],
  ["invisible", "\u00ad"],
  ["invisible", "\u00a0"],
  ["invisible", "\u3164"],
  ["invisible", "\u2800"],
  ["invisible", "\ufe0f"],
  ["invisible", "\u0000"],
  ["invisible", "\u001b"],
  ["invisible", "\r"],
  ["invisible", "\u2028"],
  ["invisible", "\u{e0041}"],
  ["invisible", "\ud800"],
])("a character is hidden: %s %j", (kind, character) => {
  expect(visiblePieces(`a${character}b`)).toEqual([
    { kind: "text", text: "a" },
    { kind, character, count: 1 },
    { kind: "text", text: "b" },
  ]);
});

test("a run of the same hidden character is counted", () => {
  expect(visiblePieces("\u200b\u200b\u200b")).toEqual([
    { kind: "invisible", character: "\u200b", count: 3 },
  ]);
});

test.each([
  { title: "a run of accents", text: "a\u0301\u0302\u0303\u0304\u0305b", base: "a", count: 5 },
  { title: "a repeated mark", text: "a\u0325\u0325b", base: "a", count: 2 },
  { title: "a digit struck through", text: "5\u03360", base: "5", count: 1 },
  { title: "an enclosed letter", text: "a\u20ddb", base: "a", count: 1 },
  { title: "a mark without a character", text: "\u0301a", base: "", count: 1 },
  { title: "a mark after a space", text: "a \u0301b", base: "a ", count: 1 },
])("combining marks are hidden: $title", ({ text, base, count }) => {
  const pieces = visiblePieces(text);
  const shown = pieces.flatMap((piece) => (piece.kind === "text" ? [piece.text] : []));
  const marks = pieces.flatMap((piece) => (piece.kind === "mark" ? [piece.count] : []));
  expect(shown.join("")).toBe(text.replaceAll(/\p{M}/gu, ""));
  expect(shown[0]?.startsWith(base)).toBe(true);
  expect(marks.reduce((sum, one) => sum + one, 0)).toBe(count);
});

test("a name is on one line with the names of its hidden characters", () => {
  expect(visibleName("pay\nnow\u202e")).toBe("pay now⟨U+202E⟩");
});

test("JSON is equivalent after escaping its hidden characters", () => {
  const value = { a: "x\u202ey\u200b\u200b", b: ["\u{e0041}", "❤️", "5\u0336"] };
  const text = visibleJson(value);
  expect(text).toContain("x\\u202ey\\u200b\\u200b");
  expect(visiblePieces(text)).toEqual([{ kind: "text", text }]);
  expect(JSON.parse(text)).toEqual(value);
});
