import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STEP, useRevealed } from "./revealed.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "cancelAnimationFrame"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const reveal = (first: string) =>
  renderHook(({ text }) => useRevealed(text), { initialProps: { text: first } });
const frame = () => act(() => vi.advanceTimersToNextFrame());

test("what is there at first is drawn whole, and so is what grows little by little", () => {
  const long = "a".repeat(5 * STEP);
  const { result, rerender } = reveal(long);
  expect(result.current).toBe(long);
  rerender({ text: `${long}${"b".repeat(STEP)}` });
  expect(result.current).toHaveLength(6 * STEP);
});

test("what comes all at once is drawn frame by frame", () => {
  const { result, rerender } = reveal("");
  const lengths: number[] = [];
  rerender({ text: "a".repeat(2.5 * STEP) });
  for (let count = 0; count < 4; count += 1) {
    lengths.push(result.current.length);
    frame();
  }
  expect(lengths).toEqual([STEP, 2 * STEP, 2.5 * STEP, 2.5 * STEP]);
});

test("a text that is taken back is gone at once", () => {
  const { result, rerender } = reveal("");
  rerender({ text: "a".repeat(2 * STEP) });
  rerender({ text: "" });
  expect(result.current).toBe("");
});
