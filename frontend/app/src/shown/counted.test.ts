import { expect, test } from "vitest";
import { counted } from "./counted.ts";

test.each([
  [0, "0"],
  [999, "999"],
  [1000, "1,000"],
  [200_000, "200,000"],
  [1_234_567, "1,234,567"],
])("%d is written as %s", (number, text) => {
  expect(counted(number)).toBe(text);
});
