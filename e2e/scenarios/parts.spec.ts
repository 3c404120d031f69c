import { expect, test } from "@playwright/test";
import { isPlayed } from "./parts.ts";

test("a run plays one of the two transports of a scenario, and the next run the other one", () => {
  const titles = ["over sse › a payment", "over websocket › a payment"];
  const today = titles.map((title) => isPlayed(title, "0"));
  expect([...today].sort()).toEqual([false, true]);
  expect(titles.map((title) => isPlayed(title, "1"))).toEqual(today.toReversed());
  expect(titles.map((title) => isPlayed(title, "all"))).toEqual([true, true]);
  expect(isPlayed("over bidi › a payment", "1"), "a scenario without a pair").toBe(true);
});
