import { expect } from "vitest";
import type { Resumed } from "../harness/conversation.ts";
import { readerFaults } from "../harness/ending.ts";
import { EVERY_RELEASE, inSequence } from "../harness/matrix.ts";
import { story, type Talk } from "../harness/story.ts";

const CHUNKS = 60;

/** Let one reader join after each thought of a post; the model goes on when sixty have come. */
function joinedAfterEachChunk(talk: Talk, watched: number): Promise<Resumed>[] {
  const readers: Promise<Resumed>[] = [];
  let count = 0;
  talk.hold("lookup");
  talk.watch = (post, chunk) => {
    if (post !== watched || chunk.type !== "reasoning-delta") return;
    const [user] = talk.chat.messages;
    const joined = (): void => {
      count += 1;
      if (count === CHUNKS) talk.letGo("lookup");
    };
    readers.push(talk.resume(user ? [user] : [], joined));
  };
  return readers;
}

async function allHaveIt(talk: Talk, readers: readonly Promise<Resumed>[]): Promise<void> {
  const all = await Promise.all(readers);
  const statuses = all.map((reader) => reader.recorder.turns[0]?.status);
  expect(statuses).toEqual(Array.from({ length: CHUNKS }, () => 200));
  for (const reader of all) {
    expect(await reader.recorder.faults()).toEqual([]);
    expect(await readerFaults(talk, reader)).toEqual([]);
  }
}

story(
  "a reader who joins after each chunk of an answer",
  { posts: 1, combinations: EVERY_RELEASE },
  async (talk) => {
    const readers = joinedAfterEachChunk(talk, 1);
    talk.say("story:sixty_thoughts");
    await talk.ends({
      calls: [["lookup", "output-available"]],
      texts: ["That was all I thought."],
      effects: { lookup: 1 },
    });
    await allHaveIt(talk, readers);
  },
);

story(
  "a reader who joins after each chunk of what follows an approval",
  { posts: 2, combinations: EVERY_RELEASE },
  async (talk) => {
    const readers = joinedAfterEachChunk(talk, 2);
    talk.say("story:sixty_thoughts_later");
    await talk.approve("pay");
    await talk.ends({
      calls: [
        ["pay", "output-available"],
        ["lookup", "output-available"],
      ],
      texts: ["That was all I thought."],
      effects: { pay: 1, lookup: 1 },
    });
    await allHaveIt(talk, readers);
  },
);

story("a reader who comes when nothing runs", { posts: inSequence(1) }, async (talk) => {
  expect((await talk.resume([])).attached).toBe(false);
  talk.say("story:approval");
  await talk.asks("pay");
  const waiting = await talk.resume(talk.chat.messages);
  expect(waiting.attached).toBe(false);
  expect(waiting.chat.status).toBe("ready");
  await talk.approve("pay");
  await talk.ends({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
  expect((await talk.resume(talk.chat.messages)).attached).toBe(false);
});
