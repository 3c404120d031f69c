import type { UIMessageChunk } from "ai";
import { afterEach, expect, test, vi } from "vitest";
import { inspectedTransports } from "./inspected-transports.ts";
import { Inspection } from "./inspection.ts";
import { WireLog } from "./log.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The chunks of an answer that lies ready, as the page's transport reads them. */
async function chunksOf(deltas: readonly UIMessageChunk[]): Promise<ReadableStream> {
  const body = [...deltas.map((delta) => JSON.stringify(delta)), "[DONE]"];
  const { DefaultChatTransport } = inspectedTransports(new Inspection(new WireLog(), () => {}));
  if (DefaultChatTransport === undefined) throw new Error("There is no transport.");
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

test("chunks that lie ready let others have their turn now and then, and none is lost", async () => {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => {
    now += 1;
    return now;
  });
  const delta = { type: "text-delta", id: "1", delta: "a" } as const;
  const chunks = await chunksOf(Array.from({ length: 200 }, () => delta));
  const read: number[] = [];
  let others = 0;
  const tick = () => {
    others += 1;
    if (read.length < 200) setImmediate(tick);
  };
  setImmediate(tick);
  for await (const chunk of chunks) read.push(chunk === undefined ? -1 : others);
  expect(read).toHaveLength(200);
  expect(new Set(read).size).toBeGreaterThan(5);
});
