import { expect } from "vitest";
import { EACH_TURN, OVER_LIVE } from "../harness/matrix.ts";
import { type Message, texts } from "../harness/messages.ts";
import { type StoryTab, story } from "../harness/story.ts";

const PLAIN = "Here is a plain answer.";

/** The metadata of the last message of the client, which is that of the stored one. */
async function lastMetadata(tab: StoryTab): Promise<Record<string, unknown>> {
  const { messages } = await tab.loadChat();
  const stored = messages.at(-1);
  const live = tab.chat.messages.at(-1);
  expect(live?.metadata).toEqual(stored?.metadata);
  return stored?.metadata as Record<string, unknown>;
}

function allTexts(messages: readonly Message[]): string[] {
  return messages.flatMap(texts);
}

/** Generate the last answer again, which the server must refuse without a change. */
async function expectNoOtherAnswer(tab: StoryTab, errorCode: string): Promise<void> {
  const before = (await tab.loadChat()).messages;
  const posts = tab.recorder.posts.length;
  void tab.chat.regenerate();
  await tab.waitForPosts(posts + 1);
  expect(tab.recorder.posts.at(-1)).toMatchObject({ status: 409, errorCode });
  expect((await tab.loadChat()).messages).toEqual(before);
}

story(
  "another answer, and an edit of the message, leave earlier versions",
  { posts: 3, combinations: EACH_TURN },
  async (tab) => {
    tab.send("story:plain");
    await tab.waitForPosts(1);
    expect(await lastMetadata(tab)).not.toHaveProperty("version");
    void tab.chat.regenerate();
    await tab.waitForPosts(2);
    expect((await lastMetadata(tab)).version).toBe(2);
    const messageId = tab.chat.messages[0]?.id ?? "";
    void tab.chat.sendMessage({ text: "story:one_tool", messageId });
    await tab.expectEnd({
      calls: [["lookup", "output-available"]],
      texts: ["A sluice is a gate."],
      effects: { lookup: 1 },
    });
    const metadata = await lastMetadata(tab);
    expect(metadata.version).toBe(3);
    expect(metadata).not.toHaveProperty("rewindable");
    const answer = tab.chat.messages.at(-1)?.id ?? "";
    for (const version of [1, 2]) {
      expect(allTexts(await tab.loadVersion(answer, version))).toEqual(["story:plain", PLAIN]);
    }
  },
);

story(
  "an answer whose tool has run cannot be replaced, and says so",
  { posts: 3, combinations: EACH_TURN },
  async (tab) => {
    tab.send("story:approval");
    await tab.waitForApprovals("pay");
    expect(await tab.loadChat()).not.toHaveProperty("messages.1.metadata.rewindable");
    await tab.approve("pay");
    await tab.waitForPosts(2);
    expect((await lastMetadata(tab)).rewindable).toBe(false);
    await expectNoOtherAnswer(tab, "would_forget_effect");
  },
);

story(
  "an answer over a live connection cannot be replaced, and says so",
  { posts: 2, combinations: OVER_LIVE },
  async (tab) => {
    tab.send("story:plain");
    await tab.waitForPosts(1);
    expect((await lastMetadata(tab)).rewindable).toBe(false);
    await expectNoOtherAnswer(tab, "not_rewindable");
  },
);

story(
  "earlier versions stay readable when the chat goes on over a live connection",
  { posts: 1, combinations: OVER_LIVE },
  async (tab) => {
    const { transport: _, ...combination } = tab.combination;
    const first = tab.openTab({ posts: 2, messages: [], combination });
    first.send("story:plain");
    await first.waitForPosts(1);
    void first.chat.regenerate();
    await first.waitForPosts(2);
    const answer = first.chat.messages.at(-1)?.id ?? "";
    tab.chat.messages = first.chat.messages;
    tab.send("story:one_tool");
    await tab.waitForPosts(1);
    const { messages } = await tab.loadChat();
    expect(messages.map(({ metadata }) => metadata)).toEqual([
      undefined,
      expect.objectContaining({ version: 2 }),
      undefined,
      expect.objectContaining({ rewindable: false }),
    ]);
    expect(allTexts(await tab.loadVersion(answer, 1))).toEqual(["story:plain", PLAIN]);
  },
);
