import type { UIMessageChunk } from "ai";
import { afterEach, expect, test, vi } from "vitest";
import { YIELDING_TRANSPORTS } from "./yielding-transports.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The chunks of a buffered response, read by a yielding transport. */
async function readChunks(deltas: readonly UIMessageChunk[]): Promise<ReadableStream> {
  const body = [...deltas.map((delta) => JSON.stringify(delta)), "[DONE]"];
  const { DefaultChatTransport } = YIELDING_TRANSPORTS;
  if (DefaultChatTransport === undefined) throw new Error("no transport");
  const transport = new DefaultChatTransport({
    api: "/api/chat",
    headers: async () => ({}),
    fetch: async () => new Response(body.map((data) => `data: ${data}\n\n`).join("")),
  });
  return transport.sendMessages({
    chatId: "c1",
    messages: [],
    trigger: "submit-message",
    messageId: undefined,
    abortSignal: undefined,
  });
}

test("buffered chunks yield to other tasks, and none is lost", async () => {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    now += 1;
    return now;
  });
  const delta = { type: "text-delta", id: "1", delta: "a" } as const;
  const chunks = await readChunks(Array.from({ length: 200 }, () => delta));
  const read: number[] = [];
  let otherTasks = 0;
  const tick = () => {
    otherTasks += 1;
    if (read.length < 200) setImmediate(tick);
  };
  setImmediate(tick);
  for await (const chunk of chunks) read.push(chunk === undefined ? -1 : otherTasks);
  expect(read).toHaveLength(200);
  expect(new Set(read).size).toBeGreaterThan(5);
});
