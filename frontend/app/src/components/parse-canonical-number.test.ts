import { expect, test } from "vitest";
import { InvalidNumber, parseNumberText } from "./parse-canonical-number.ts";

test.each(["0", "7", " 12 ", "-3", "0.125", "100.50", "12.3450", "10.00"])(
  "%j is a number",
  (text) => {
    expect(parseNumberText(text)).toBe(Number(text));
  },
);

test.each([
  ["1,500", "“1,500” can be 1500 or 1.5. Type one of them."],
  ["1.500", "“1.500” can be 1500 or 1.5. Type one of them."],
  ["-2,125", "“-2,125” can be -2125 or -2.1250. Type one of them."],
  ["12,5", "Type 12.5."],
  ["0,125", "Type 0.125."],
  ["1.500,75", "Type 1500.75."],
  ["1,500.75", "Type 1500.75."],
  ["1,500,000", "Type 1500000."],
  ["1 500", "Type 1500."],
  ["1'500", "Type 1500."],
  ["0x10", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["0b1", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["1e3", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["007", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["+5", "Type a number in digits, such as 1500 or 12.5, without separators."],
  [".5", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["５０", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["50 euros", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["Infinity", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["", "Type a number in digits, such as 1500 or 12.5, without separators."],
  ["9007199254740993", "This number has too many digits; it would be sent as 9007199254740992."],
  ["0.1000000000000000055", "This number has too many digits; it would be sent as 0.1."],
])("%j is refused", (text, message) => {
  expect(() => parseNumberText(text)).toThrow(new InvalidNumber(message));
});

test("each number of a refusal can be typed", () => {
  for (const text of ["1,500", "12.345", "-2,125", "1.500,75"]) {
    let message = "";
    try {
      parseNumberText(text);
    } catch (error) {
      message = String(error)
        .replace(`“${text}”`, "")
        .replace(/\.( |$)/g, " ");
    }
    const numbers = message.match(/-?\d[\d.]*/g) ?? [];
    expect(numbers.length).toBeGreaterThan(0);
    for (const number of numbers) expect(parseNumberText(number)).toBe(Number(number));
  }
});
