import { expect } from "vitest";
import { inSequence } from "../harness/matrix.ts";
import { texts } from "../harness/messages.ts";
import { type StoryTab, story } from "../harness/story.ts";

/** Resolves when a chunk of this type was received in a post. */
function whenReceived(tab: StoryTab, observedPost: number, type: string): Promise<void> {
  return new Promise((resolve) => {
    tab.onPostChunk = (post, chunk) => {
      if (post === observedPost && chunk.type === type) resolve();
    };
  });
}

function lastFinishReason(tab: StoryTab): unknown {
  return tab.recorder.posts.at(-1)?.chunks.at(-1)?.finishReason;
}

story("stop during a model response", { posts: 1 }, async (tab) => {
  const started = whenReceived(tab, 1, "reasoning-delta");
  tab.send("story:stop");
  await started;
  await tab.stopTurn();
  await tab.expectEnd({});
  expect(lastFinishReason(tab)).toBe("other");
});

story("stop after an approved call", { posts: inSequence(1) }, async (tab) => {
  const last = tab.expectedPosts;
  const started = whenReceived(tab, last, "reasoning-delta");
  tab.send("story:stop_after_approval");
  await tab.approve("pay");
  await started;
  await tab.stopTurn();
  await tab.expectEnd({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
  expect(lastFinishReason(tab)).toBe("other");
});

story("a new message after a stop", { posts: 2 }, async (tab) => {
  const started = whenReceived(tab, 1, "reasoning-delta");
  tab.send("story:stop");
  await started;
  await tab.stopTurn();
  await tab.waitForPosts(1);
  tab.send("story:after");
  await tab.expectEnd({ messages: 2 });
  expect(tab.chat.messages.flatMap(texts).at(-1)).toBe("Here is another answer.");
});

story("stop with a pending approval", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:approval");
  await tab.expectPending("pay");
  await tab.stopTurn();
  await tab.expectIdle(300);
  const { messages, status } = await tab.loadChat();
  expect(status).toBe("ready");
  const card = messages[1]?.parts.find((part) => part.approval !== undefined);
  expect(card).toMatchObject({ state: "output-denied", approval: { approved: false } });
  await tab.approve("pay");
  await tab.waitForPosts(2);
  expect(tab.recorder.posts[1]).toMatchObject({ status: 409, errorCode: "superseded" });
  await tab.expectEnd({
    calls: [["pay", "approval-responded"]],
    status: "error",
    stored: false,
    resumes: false,
  });
});

story("stop without a running turn", { posts: 1 }, async (tab) => {
  await tab.stopTurn();
  tab.send("story:plain");
  await tab.expectEnd({ texts: ["Here is a plain answer."] });
  await tab.stopTurn();
  await tab.expectEnd({ texts: ["Here is a plain answer."] });
});
