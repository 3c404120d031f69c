import { expect, test } from "vitest";
import { digitGroups, formatCount, jsonText, numberText } from "./canonical-number.ts";
import { parseNumberText } from "./parse-canonical-number.ts";

test.each([
  [0, "0"],
  [-0, "-0"],
  [1500, "1500"],
  [-12.5, "-12.5"],
  [1e21, "1000000000000000000000"],
  [-1.5e22, "-15000000000000000000000"],
  [1e-7, "0.0000001"],
  [1.25e-9, "0.00000000125"],
])("%d is shown as %s, and can be typed so", (number, text) => {
  expect(numberText(number)).toBe(text);
  expect(parseNumberText(text)).toBe(number);
});

test.each([
  ["1500", ["1500"]],
  ["15000", ["15", "000"]],
  ["-1234567.8912", ["-1", "234", "567.8912"]],
])("the digits of %s are grouped", (text, groups) => {
  expect(digitGroups(text)).toEqual(groups);
});

test("JSON has numbers in the same form, and texts as they are", () => {
  const text = jsonText({ a: 1e21, b: [1e-7, 2], c: '"1e+21" 1e+21' });
  expect(text).toContain('"a": 1000000000000000000000');
  expect(text).toContain("0.0000001");
  expect(text).toContain('"c": "\\"1e+21\\" 1e+21"');
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
