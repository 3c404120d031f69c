import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useIncrementalList } from "./use-incremental-list.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

test("an item that was listed stays listed when another one follows", () => {
  const { result, rerender } = renderHook(({ items }) => useIncrementalList(items), {
    initialProps: { items: numbers(30) },
  });
  const [first] = result.current;
  expect(first).toBeGreaterThan(0);
  rerender({ items: numbers(32) });
  expect(result.current[0]).toBe(first);
  expect(result.current.at(-1)).toBe(31);
  rerender({ items: numbers(2) });
  expect(result.current).toEqual([0, 1]);
});
