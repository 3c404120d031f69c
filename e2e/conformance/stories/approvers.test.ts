import { expect, vi } from "vitest";
import type { Combination } from "../harness/matrix.ts";
import { calls, texts } from "../harness/messages.ts";
import { fetchWithoutConnectTimeout } from "../harness/recorder.ts";
import { effectsOf } from "../harness/servers.ts";
import { type StoryTab, story } from "../harness/story.ts";

/** The stock rule, which has no push: each major, over SSE and over a socket. */
const STOCK = { release: "progressive", style: "call", rule: "stock" } as const;
const COMBINATIONS: readonly Combination[] = [
  { ...STOCK, version: "7" },
  { ...STOCK, version: "7", transport: "websocket" },
  { ...STOCK, version: "6" },
  { ...STOCK, version: "6", transport: "bidi" },
];

/** The state of the approval of a tab, as the second person sees it. */
async function stateOf(tab: StoryTab, path: string): Promise<string> {
  const response = await fetchWithoutConnectTimeout(`${tab.server.url}${path}`, {
    headers: { "x-user": "boss" },
  });
  return ((await response.json()) as { state: string }).state;
}

/** The second person approves, elsewhere. */
async function approveAsBoss(tab: StoryTab, path: string): Promise<void> {
  const response = await fetchWithoutConnectTimeout(`${tab.server.url}${path}`, {
    method: "POST",
    headers: { "x-user": "boss", "content-type": "application/json" },
    body: JSON.stringify({ approved: true }),
  });
  expect(response.status).toBe(202);
}

for (const moment of ["while the answer runs", "after its end"] as const) {
  story(
    `the last yes of another person, seen by the stock client ${moment}`,
    { posts: 2, combinations: COMBINATIONS },
    async (tab) => {
      tab.send("story:two_people");
      await tab.waitForApprovals("pay_together");
      const path = `/api/approvals/${tab.pending[0]?.approval?.id}`;
      await tab.approve("pay_together");
      await tab.waitForPosts(2);
      expect(tab.recorder.posts[1]?.chunks.map(({ type }) => type)).toEqual(["start", "error"]);
      expect(tab.chat.status).toBe("error");
      expect(tab.chat.error?.message).toBe(
        `Your answer is noted; pay_together still needs 1 more yes, of ${tab.user} or boss.`,
      );
      expect((await tab.loadChat()).status).toBe("waiting");
      expect(await effectsOf(tab.server, tab.chatId)).toEqual([]);

      const isRunning = moment === "while the answer runs";
      if (isRunning) tab.pauseModel("pay_together");
      try {
        await approveAsBoss(tab, path);
        await vi.waitFor(async () => expect(await stateOf(tab, path)).toBe("executed"), {
          timeout: 30_000,
          interval: 50,
        });
        // Nothing is pushed to a stock client.
        await tab.expectIdle(300);
        expect(tab.chat.messages.flatMap(calls).map(({ state }) => state)).toEqual([
          "approval-responded",
        ]);
        if (isRunning) {
          const resumed = tab.chat.resumeStream();
          await tab.waitFor(() => tab.chat.status === "streaming", "the resumed answer");
          tab.resumeModel("pay_together");
          await resumed;
        }
      } finally {
        tab.resumeModel("pay_together");
      }
      await vi.waitFor(async () => expect((await tab.loadChat()).status).toBe("ready"), {
        timeout: 30_000,
        interval: 50,
      });
      const shown = isRunning ? tab : await tab.reload(0);
      const [answer, ...others] = shown.chat.messages.filter(({ role }) => role === "assistant");
      expect(others).toEqual([]);
      expect(answer && calls(answer).map(({ state }) => state)).toEqual(["output-available"]);
      expect(answer && texts(answer)).toEqual(["The payment is settled."]);
      expect(await effectsOf(tab.server, tab.chatId)).toHaveLength(1);
    },
  );
}
