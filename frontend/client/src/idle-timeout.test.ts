import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { failIdleSockets, failIdleStreams } from "./idle-timeout.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function response(type: string) {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const onCancel = vi.fn();
  const body = new ReadableStream<Uint8Array>({
    start: (value) => {
      controller = value;
    },
    cancel: onCancel,
  });
  const fetch = failIdleStreams(
    async () => new Response(body, { headers: { "content-type": type } }),
  );
  return { controller, fetch, onCancel };
}

test("an event stream fails with a network error after 20 seconds of silence", async () => {
  const { controller, fetch, onCancel } = response("text/event-stream; charset=utf-8");
  const reader = (await fetch("/")).body?.getReader();
  controller.enqueue(new Uint8Array([1]));
  await reader?.read();
  const read = expect(reader?.read()).rejects.toThrow(/network/);
  await vi.advanceTimersByTimeAsync(19_999);
  expect(onCancel).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await read;
  expect(onCancel).toHaveBeenCalled();
});

test("each byte starts the time anew, and the end is passed on", async () => {
  const { controller, fetch } = response("text/event-stream");
  const reader = (await fetch("/")).body?.getReader();
  for (let count = 0; count < 3; count += 1) {
    const read = reader?.read();
    await vi.advanceTimersByTimeAsync(15_000);
    controller.enqueue(new Uint8Array([count]));
    expect(await read).toMatchObject({ done: false });
  }
  controller.close();
  expect(await reader?.read()).toMatchObject({ done: true });
});

test("any other response is unchanged", async () => {
  const { controller, fetch } = response("application/json");
  const text = (await fetch("/")).text();
  await vi.advanceTimersByTimeAsync(60_000);
  controller.close();
  expect(await text).toBe("");
});

test("a silent socket emits an error and closes", async () => {
  class Socket extends EventTarget {
    close = vi.fn();
  }
  const socket = new (failIdleSockets(Socket))("ws://host") as Socket;
  const onError = vi.fn();
  socket.addEventListener("error", onError);
  await vi.advanceTimersByTimeAsync(19_000);
  socket.dispatchEvent(new Event("message"));
  await vi.advanceTimersByTimeAsync(19_000);
  expect(onError).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(onError).toHaveBeenCalledTimes(1);
  expect(socket.close).toHaveBeenCalledWith(4000, "silence");
});
