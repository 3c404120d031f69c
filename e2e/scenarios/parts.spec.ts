import { expect, test } from "@playwright/test";
import { isPlayed, isRowPlayed } from "./parts.ts";

test("a run plays one of the two transports of a scenario, and the next run the other one", () => {
  const titles = ["over sse › a payment", "over websocket › a payment"];
  const today = titles.map((title) => isPlayed(title, "0"));
  expect([...today].sort()).toEqual([false, true]);
  expect(titles.map((title) => isPlayed(title, "1"))).toEqual(today.toReversed());
  expect(titles.map((title) => isPlayed(title, "all"))).toEqual([true, true]);
  expect(isPlayed("over bidi › a payment", "1"), "a scenario without a pair").toBe(true);
});

test("a run plays a third of the rows of a long table", () => {
  const days = ["0", "1", "2"].map((part) => [0, 1, 2, 3].filter((row) => isRowPlayed(row, part)));
  expect(days).toEqual([[0, 3], [1], [2]]);
  expect(isRowPlayed(1, "all")).toBe(true);
});
