import { expect, test } from "vitest";
import { momentText } from "./moment-text.ts";

const NOON = new Date(2026, 0, 15, 12, 0).getTime();

test.each([
  { now: new Date(2026, 0, 15, 23, 59), shown: "12:00" },
  { now: new Date(2026, 0, 15, 0, 0), shown: "12:00" },
  { now: new Date(2026, 0, 16, 0, 0), shown: "15 Jan 2026, 12:00" },
  { now: new Date(2027, 0, 15, 12, 0), shown: "15 Jan 2026, 12:00" },
])("a moment of 15 January is shown at $now as $shown", ({ now, shown }) => {
  expect(momentText(NOON, now.getTime())).toBe(shown);
});
