import { expect, test } from "vitest";
import { callSummary } from "./call-summary.ts";

test.each([
  [{ recipient: "Ada", amount: 50, currency: "EUR" }, "Ada, 50 EUR"],
  [{ recipient: "Ada", amount: 50 }, "Ada, 50"],
  [{ recipient: "Ada", amount: 50, currency: "daEUR" }, "Ada, 50 daEUR"],
  [{ recipient: "Ada", amount: 50, currency: "E\u202eR" }, "Ada, 50 E⟨U+202E⟩R"],
  [{ city: "Bern", days: 3 }, "Bern, 3"],
])("the summary of %j is %s", (args, expected) => {
  expect(callSummary(args)).toBe(expected);
});
