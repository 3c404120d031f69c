import { describe, expect, inject, test } from "vitest";
import { type Cut, CuttingProxy } from "../harness/cutting-proxy.ts";
import { storedFaults } from "../harness/expectations.ts";
import { type Combination, nameOf } from "../harness/matrix.ts";
import { calls, texts } from "../harness/messages.ts";
import { effectsOf } from "../harness/servers.ts";
import { StoryTab } from "../harness/story.ts";

/** The number of cuts: the answer has 60 reasoning deltas before its tool is executed. */
const CUTS = 60;
const CHAT = { release: "progressive", style: "call", rule: "stock" } as const;
const CLIENTS: readonly Combination[] = [
  { ...CHAT, version: "7", transport: "bidi" },
  { ...CHAT, version: "6", transport: "bidi" },
  { ...CHAT, version: "7", transport: "websocket" },
];

/** Reconnect manually: the stock transport neither detects a silent connection nor reconnects. */
async function resumeAfterEachCut(
  tab: StoryTab,
  proxy: CuttingProxy,
  cut: Cut,
  first: Promise<void>,
): Promise<void> {
  const { transport } = tab.chat as unknown as { transport: { close(): void } };
  let reading = first;
  for (let count = 1; count <= CUTS; count += 1) {
    await tab.waitFor(() => proxy.cuts >= count, `cut ${count}`);
    if (cut === "silence") transport.close();
    await reading;
    reading = tab.chat.resumeStream();
  }
  await reading;
}

/** Stream an answer over connections that are cut after one chunk, then two chunks, and so on. */
async function run(combination: Combination, cut: Cut): Promise<void> {
  const server = inject("servers").call;
  // A turn that has ended is not resumed, and the stock transport does not load the chat then.
  const isStock = combination.transport === "websocket";
  const proxy = new CuttingProxy(server.url, cut, CUTS, (cuts) => {
    if (cuts === CUTS && proxy.isWhole === isStock) tab.resumeModel("lookup");
    tab.changes.notify();
  });
  const tab = new StoryTab({
    server: { ...server, url: await proxy.open() },
    combination,
    posts: CUTS,
    reconnect: { initialDelay: 1, maxDelay: 50, ...(cut === "silence" && { idleTimeout: 500 }) },
  });
  tab.pauseModel("lookup");
  try {
    const first = tab.chat.sendMessage({ text: "story:sixty_thoughts" });
    if (isStock) await resumeAfterEachCut(tab, proxy, cut, first);
    const isEnded = () => tab.chat.status === "ready" || tab.chat.status === "error";
    await tab.waitFor(() => proxy.cuts === CUTS && isEnded(), "the end after all cuts");
    const [, answer] = tab.chat.messages;
    expect(tab.chat.status, tab.describe()).toBe("ready");
    expect(answer && texts(answer)).toEqual(["That was all I thought."]);
    expect(answer && calls(answer).map(({ state }) => state)).toEqual(["output-available"]);
    expect(await storedFaults(tab, {}, await tab.loadChat())).toEqual([]);
    expect(await effectsOf(server, tab.chatId)).toHaveLength(1);
  } finally {
    tab.close();
    proxy.close();
  }
}

describe.concurrent.each(["close", "reset", "silence"] as const)("cut by %s", (cut) => {
  test.each(CLIENTS.map((combination) => ({ combination, name: nameOf(combination) })))(
    "after each chunk: $name",
    ({ combination }) => run(combination, cut),
  );
});
