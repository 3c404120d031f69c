import { expect } from "vitest";
import { inSequence } from "../harness/matrix.ts";
import { texts } from "../harness/messages.ts";
import { story, type Talk } from "../harness/story.ts";

/** Resolves when the named chunk of a post has come. */
function comes(talk: Talk, watched: number, type: string): Promise<void> {
  return new Promise((resolve) => {
    talk.watch = (post, chunk) => {
      if (post === watched && chunk.type === type) resolve();
    };
  });
}

function lastReason(talk: Talk): unknown {
  return talk.recorder.posts.at(-1)?.chunks.at(-1)?.finishReason;
}

story("stop while the model speaks", { posts: 1 }, async (talk) => {
  const begun = comes(talk, 1, "reasoning-delta");
  talk.say("story:stop");
  await begun;
  await talk.stopTurn();
  await talk.ends({});
  expect(lastReason(talk)).toBe("other");
});

story("stop after an approved call", { posts: inSequence(1) }, async (talk) => {
  const last = talk.expectedPosts;
  const begun = comes(talk, last, "reasoning-delta");
  talk.say("story:stop_after_approval");
  await talk.approve("pay");
  await begun;
  await talk.stopTurn();
  await talk.ends({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
  expect(lastReason(talk)).toBe("other");
});

story("new text after a stop", { posts: 2 }, async (talk) => {
  const begun = comes(talk, 1, "reasoning-delta");
  talk.say("story:stop");
  await begun;
  await talk.stopTurn();
  await talk.rests(1);
  talk.say("story:after");
  await talk.ends({ messages: 2 });
  expect(talk.chat.messages.flatMap(texts).at(-1)).toBe("Here is another answer.");
});

story("stop while an approval waits", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:approval");
  await talk.waitsFor("pay");
  await talk.stopTurn();
  await talk.staysQuiet(300);
  const { messages, status } = await talk.history();
  expect(status).toBe("ready");
  const card = messages[1]?.parts.find((part) => part.approval !== undefined);
  expect(card).toMatchObject({ state: "output-denied", approval: { approved: false } });
  await talk.approve("pay");
  await talk.rests(2);
  expect(talk.recorder.posts[1]).toMatchObject({ status: 409, errorCode: "superseded" });
  await talk.ends({
    calls: [["pay", "approval-responded"]],
    status: "error",
    stored: false,
    resumes: false,
  });
});

story("stop when nothing runs", { posts: 1 }, async (talk) => {
  await talk.stopTurn();
  talk.say("story:plain");
  await talk.ends({ texts: ["Here is a plain answer."] });
  await talk.stopTurn();
  await talk.ends({ texts: ["Here is a plain answer."] });
});
