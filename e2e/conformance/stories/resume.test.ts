import { expect } from "vitest";
import type { Reader } from "../harness/client-tab.ts";
import { readerFaults } from "../harness/expectations.ts";
import { EVERY_RELEASE, inSequence } from "../harness/matrix.ts";
import { type StoryTab, story } from "../harness/story.ts";

const CHUNKS = 60;

/** Add a reader after each reasoning delta of a post; the model resumes after all 60 are attached. */
function readersAfterEachChunk(tab: StoryTab, observedPost: number): Promise<Reader>[] {
  const readers: Promise<Reader>[] = [];
  let count = 0;
  tab.pauseModel("lookup");
  tab.onPostChunk = (post, chunk) => {
    if (post !== observedPost || chunk.type !== "reasoning-delta") return;
    const [user] = tab.chat.messages;
    const onAttached = (): void => {
      count += 1;
      if (count === CHUNKS) tab.resumeModel("lookup");
    };
    readers.push(tab.resume(user ? [user] : [], onAttached));
  };
  return readers;
}

async function expectAllComplete(
  tab: StoryTab,
  readers: readonly Promise<Reader>[],
): Promise<void> {
  const all = await Promise.all(readers);
  const statuses = all.map(({ recorder: { turns } }) => turns[0]?.error ?? turns[0]?.status);
  expect(statuses).toEqual(Array.from({ length: CHUNKS }, () => 200));
  for (const reader of all) {
    expect(await reader.recorder.faults()).toEqual([]);
    expect(await readerFaults(tab, reader)).toEqual([]);
  }
}

story(
  "a reader that resumes after each chunk of an answer",
  { posts: 1, combinations: EVERY_RELEASE },
  async (tab) => {
    const readers = readersAfterEachChunk(tab, 1);
    tab.send("story:sixty_thoughts");
    await tab.expectEnd({
      calls: [["lookup", "output-available"]],
      texts: ["That was all I thought."],
      effects: { lookup: 1 },
    });
    await expectAllComplete(tab, readers);
  },
);

story(
  "a reader that resumes after each chunk after an approval",
  { posts: 2, combinations: EVERY_RELEASE },
  async (tab) => {
    const readers = readersAfterEachChunk(tab, 2);
    tab.send("story:sixty_thoughts_later");
    await tab.approve("pay");
    await tab.expectEnd({
      calls: [
        ["pay", "output-available"],
        ["lookup", "output-available"],
      ],
      texts: ["That was all I thought."],
      effects: { pay: 1, lookup: 1 },
    });
    await expectAllComplete(tab, readers);
  },
);

story(
  "a reader that resumes after an approval learns who approved",
  { posts: 2, combinations: EVERY_RELEASE },
  async (tab) => {
    tab.send("story:approval");
    await tab.approve("pay");
    await tab.expectEnd({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
    const reader = await tab.reader;
    const { messages } = await tab.loadChat();
    const stored = messages.at(-1)?.metadata as { approvals: object };
    const [approvalId = ""] = Object.keys(stored.approvals);
    const [start, decided] = reader?.recorder.turns[0]?.chunks ?? [];
    expect(start?.type).toBe("start");
    expect(decided).toMatchObject({
      type: "message-metadata",
      messageMetadata: { approvals: { [approvalId]: { decidedBy: tab.user } } },
    });
    expect(reader?.chat.messages.at(-1)?.metadata).toEqual(stored);
    expect(tab.chat.messages.at(-1)?.metadata).toEqual(stored);
  },
);

story("a resume without a running turn", { posts: inSequence(1) }, async (tab) => {
  expect((await tab.resume([])).attached).toBe(false);
  tab.send("story:approval");
  await tab.waitForApprovals("pay");
  const waiting = await tab.resume(tab.chat.messages);
  expect(waiting.attached).toBe(false);
  expect(waiting.chat.status).toBe("ready");
  await tab.approve("pay");
  await tab.expectEnd({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
  expect((await tab.resume(tab.chat.messages)).attached).toBe(false);
});
