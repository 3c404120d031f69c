import { describe, expect, inject, test } from "vitest";
import { type Cut, CuttingProxy } from "../harness/cutting-proxy.ts";
import { effectsOf } from "../harness/effects.ts";
import { historyFaults } from "../harness/ending.ts";
import { type Combination, nameOf } from "../harness/matrix.ts";
import { calls, texts } from "../harness/messages.ts";
import { Talk } from "../harness/story.ts";

/** Chunks of the answer before its tool has run: a step, 60 thoughts and their ends, the call. */
const CUTS = 60;
const CHAT = { release: "progressive", style: "call", rule: "stock" } as const;
const CLIENTS: readonly Combination[] = [
  { ...CHAT, version: "7", transport: "bidi" },
  { ...CHAT, version: "6", transport: "bidi" },
  { ...CHAT, version: "7", transport: "websocket" },
];

/** The stock transport neither sees a silent connection nor makes another one. */
async function goOnByHand(
  talk: Talk,
  proxy: CuttingProxy,
  cut: Cut,
  first: Promise<void>,
): Promise<void> {
  const { transport } = talk.chat as unknown as { transport: { close(): void } };
  let reading = first;
  for (let count = 1; count <= CUTS; count += 1) {
    await talk.waitFor(() => proxy.cuts >= count, `cut ${count}`);
    if (cut === "silence") transport.close();
    await reading;
    reading = talk.chat.resumeStream();
  }
  await reading;
}

/** Tell one answer over a way that is cut after its first chunk, then after its second, and so on. */
async function tell(combination: Combination, cut: Cut): Promise<void> {
  const place = inject("places").call;
  const proxy = new CuttingProxy(place.url, cut, CUTS, (cuts) => {
    if (cuts === CUTS) talk.letGo("lookup");
    talk.bell.ring();
  });
  const talk = new Talk({
    place: { ...place, url: await proxy.open() },
    combination,
    posts: CUTS,
    reconnect: { initialDelay: 1, maxDelay: 50, idleTimeout: 250 },
  });
  talk.hold("lookup");
  try {
    const first = talk.chat.sendMessage({ text: "story:sixty_thoughts" });
    if (combination.transport === "websocket") await goOnByHand(talk, proxy, cut, first);
    const isOver = () => talk.chat.status === "ready" || talk.chat.status === "error";
    await talk.waitFor(() => proxy.cuts === CUTS && isOver(), "the end after all cuts");
    const [, answer] = talk.chat.messages;
    expect(talk.chat.status, talk.describe()).toBe("ready");
    expect(answer && texts(answer)).toEqual(["That was all I thought."]);
    expect(answer && calls(answer).map(({ state }) => state)).toEqual(["output-available"]);
    expect(await historyFaults(talk, {}, await talk.history())).toEqual([]);
    expect(await effectsOf(place, talk.chatId)).toHaveLength(1);
  } finally {
    talk.close();
    proxy.close();
  }
}

describe.concurrent.each(["close", "reset", "silence"] as const)("cut by %s", (cut) => {
  test.each(CLIENTS.map((combination) => ({ combination, name: nameOf(combination) })))(
    "after each chunk: $name",
    ({ combination }) => tell(combination, cut),
  );
});
