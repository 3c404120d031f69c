import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RequestRefused } from "../refusals.ts";
import { Reconnection } from "./reconnection.ts";

const LOST = new TypeError("network error");

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function reconnection(...results: (Error | undefined)[]) {
  const attempt = vi.fn(async () => {
    const result = results.shift();
    if (result !== undefined) throw result;
  });
  const onChange = vi.fn();
  return { attempt, onChange, subject: new Reconnection(attempt, onChange) };
}

test("attempts are repeated until one succeeds", async () => {
  const { attempt, onChange, subject } = reconnection(LOST, LOST, undefined);
  subject.start(LOST);
  subject.start(LOST);
  expect(onChange).toHaveBeenLastCalledWith(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(attempt).toHaveBeenCalledTimes(3);
  expect(onChange.mock.calls).toEqual([[true], [false, undefined]]);
});

test("the browser being online again starts an attempt at once", async () => {
  const target = new EventTarget();
  vi.stubGlobal("addEventListener", target.addEventListener.bind(target));
  vi.stubGlobal("removeEventListener", target.removeEventListener.bind(target));
  const { attempt, onChange, subject } = reconnection(LOST, LOST, LOST, undefined);
  subject.start(LOST);
  await vi.advanceTimersByTimeAsync(400);
  const count = attempt.mock.calls.length;
  target.dispatchEvent(new Event("online"));
  await vi.advanceTimersByTimeAsync(0);
  expect(attempt).toHaveBeenCalledTimes(count + 1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(onChange).toHaveBeenLastCalledWith(false, undefined);
  vi.unstubAllGlobals();
});

test.each([
  ["a refusal", new RequestRefused("You are signed out.", 401, "unauthenticated")],
  ["a failure", new Error("The answer was interrupted.")],
])("%s ends the attempts with its error", async (_, error) => {
  const { attempt, onChange, subject } = reconnection(error);
  subject.start(LOST);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(attempt).toHaveBeenCalledTimes(1);
  expect(onChange).toHaveBeenLastCalledWith(false, error);
});

test("a server that is unavailable is tried again, for two minutes", async () => {
  const busy = new RequestRefused("Try again.", 503, "unavailable");
  const { attempt, onChange, subject } = reconnection(...Array<Error>(1_000).fill(busy));
  subject.start(LOST);
  await vi.advanceTimersByTimeAsync(130_000);
  expect(attempt.mock.calls.length).toBeGreaterThan(20);
  expect(onChange).toHaveBeenLastCalledWith(false, busy);
  subject.restart(LOST);
  expect(onChange).toHaveBeenLastCalledWith(true);
  subject.stop();
});

test("a run that has ended is repeated unseen, and seen while the server cannot be reached", async () => {
  const interrupted = new Error("The answer was interrupted.");
  const { attempt, onChange, subject } = reconnection(interrupted, LOST, LOST, undefined);
  await subject.repeat(LOST);
  expect(onChange.mock.calls).toEqual([[false, interrupted]]);
  await subject.repeat(LOST);
  expect(onChange).toHaveBeenLastCalledWith(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(attempt).toHaveBeenCalledTimes(4);
  expect(onChange.mock.calls.slice(1)).toEqual([[true], [false, undefined]]);
});

test("a connection that is lost again at once waits longer each time", async () => {
  const { attempt, subject } = reconnection();
  for (let count = 0; count < 50; count += 1) {
    subject.start(LOST);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(attempt.mock.calls.length).toBeLessThan(10);
});
