import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STEP, useGradualText } from "./use-gradual-text.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "cancelAnimationFrame"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const reveal = (first: string) =>
  renderHook(({ text }) => useGradualText(text), { initialProps: { text: first } });
const frame = () => act(() => vi.advanceTimersToNextFrame());

test("the initial text and small additions are rendered completely", () => {
  const long = "a".repeat(5 * STEP);
  const { result, rerender } = reveal(long);
  expect(result.current).toBe(long);
  rerender({ text: `${long}${"b".repeat(STEP)}` });
  expect(result.current).toHaveLength(6 * STEP);
});

test("a large addition is revealed frame by frame", () => {
  const { result, rerender } = reveal("");
  const lengths: number[] = [];
  rerender({ text: "a".repeat(2.5 * STEP) });
  for (let count = 0; count < 4; count += 1) {
    lengths.push(result.current.length);
    frame();
  }
  expect(lengths).toEqual([STEP, 2 * STEP, 2.5 * STEP, 2.5 * STEP]);
});

test("a removed text disappears immediately", () => {
  const { result, rerender } = reveal("");
  rerender({ text: "a".repeat(2 * STEP) });
  rerender({ text: "" });
  expect(result.current).toBe("");
});
