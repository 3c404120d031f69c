import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useChatSync } from "./use-chat-sync.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test.each([
  ["a response began meanwhile", () => Promise.resolve(false)],
  ["the chat could not be loaded", () => Promise.reject(new TypeError("no network"))],
])("a change is shown later if %s", async (_, first) => {
  const synchronize = vi.fn(() => Promise.resolve(true)).mockImplementationOnce(first);
  let publish: (event: unknown) => void = () => {};
  const subscribe = (listener: (event: never) => void) => {
    publish = listener as typeof publish;
    return () => {};
  };
  renderHook(() => useChatSync({ id: "c1", chat: { synchronize }, isBusy: false, subscribe }));

  act(() => publish({ type: "finished", chatId: "c1" }));
  await act(() => vi.advanceTimersByTimeAsync(60_000));

  expect(synchronize).toHaveBeenCalledTimes(2);
});
