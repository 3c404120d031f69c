import { expect, test } from "vitest";
import { chatDate } from "./chat-date.ts";

const NOW = new Date(2026, 10, 22, 18, 30);

test.each([
  [new Date(2026, 10, 22, 9, 5), "09:05"],
  [new Date(2026, 10, 21, 23, 59), "21 Nov"],
  [new Date(2025, 0, 2), "2 Jan 2025"],
])("%s is shown as %s", (date, text) => {
  expect(chatDate(date.toISOString(), NOW)).toBe(text);
});

test("an invalid timestamp is not shown", () => {
  expect(chatDate("soon", NOW)).toBe("");
});
