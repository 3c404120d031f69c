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

test("a change that was loaded while the page was busy with another one is shown", async () => {
  let end: (isShown: boolean) => void = () => {};
  const synchronize = vi
    .fn(() => Promise.resolve(true))
    .mockImplementationOnce(() => new Promise((resolve) => (end = resolve)));
  let publish: (event: unknown) => void = () => {};
  const subscribe = (listener: (event: never) => void) => {
    publish = listener as typeof publish;
    return () => {};
  };
  const { rerender } = renderHook(
    ({ isBusy }) => useChatSync({ id: "c1", chat: { synchronize }, isBusy, subscribe }),
    { initialProps: { isBusy: false } },
  );
  act(() => publish({ type: "message", chatId: "c1" }));
  await act(() => vi.advanceTimersByTimeAsync(1_000));

  rerender({ isBusy: true });
  rerender({ isBusy: false });
  await act(async () => end(false));
  await act(() => vi.advanceTimersByTimeAsync(60_000));

  expect(synchronize).toHaveBeenCalledTimes(2);
});

function started() {
  const synchronize = vi.fn(() => Promise.resolve(true));
  let publish: (event: unknown) => void = () => {};
  const subscribe = (listener: (event: never) => void) => {
    publish = listener as typeof publish;
    return () => {};
  };
  renderHook(() => useChatSync({ id: "c1", chat: { synchronize }, isBusy: false, subscribe }));
  const after = async (milliseconds: number, type?: string) => {
    await act(() => vi.advanceTimersByTimeAsync(milliseconds));
    if (type !== undefined) act(() => publish({ type, chatId: "c1" }));
    await act(() => vi.advanceTimersByTimeAsync(0));
    return synchronize.mock.calls.length;
  };
  return after;
}

test("a decision is shown at once, and what follows it is collected", async () => {
  const after = started();
  expect(await after(500, "approval")).toBe(1);
  expect(await after(10, "chat")).toBe(1);
  expect(await after(10, "approval")).toBe(1);
  expect(await after(100)).toBe(2);
  expect(await after(1_000)).toBe(2);
});

test("events that go on and on do not put off what they change", async () => {
  const after = started();
  for (let count = 0; count < 5; count += 1) await after(60, "message");
  expect(await after(0)).toBeGreaterThan(1);
});
