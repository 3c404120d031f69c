import { expect, test } from "vitest";
import { argumentChanges } from "./argument-changes.ts";

test("a change is named by its path, and what was not changed is not listed", () => {
  const before = {
    to: { city: "Bern", floor: null },
    items: [{ count: 1 }, { count: 2 }],
    big: 1e21,
  };
  const after = { to: { city: "Basel", floor: null }, items: [{ count: 3 }], big: 1e21, note: "" };
  expect(argumentChanges(before, after)).toEqual([
    { name: "to.city", before: "Bern", after: "Basel" },
    { name: "items[0].count", before: "1", after: "3" },
    { name: "items[1]", before: '{ "count": 2 }', after: undefined },
    { name: "note", before: undefined, after: "empty text" },
  ]);
});
