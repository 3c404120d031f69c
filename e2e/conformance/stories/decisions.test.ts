import { expect } from "vitest";
import { effectsOf } from "../harness/effects.ts";
import { EACH_TRANSPORT } from "../harness/matrix.ts";
import { story, type Talk } from "../harness/story.ts";

async function paid(talk: Talk): Promise<unknown[]> {
  return (await effectsOf(talk.place, talk.chatId)).map(({ args }) => args.amount);
}

story("a yes with changed arguments", { posts: 2, combinations: EACH_TRANSPORT }, async (talk) => {
  talk.say("story:approval");
  await talk.approveWith("pay", { edit: { amount: 7 } });
  await talk.ends({
    calls: [["pay", "output-available"]],
    texts: ["The payment is settled."],
    effects: { pay: 1 },
  });
  expect(await paid(talk)).toEqual([7]);
});

story(
  "a yes with changed arguments beside another yes, in one request",
  { posts: 2, combinations: EACH_TRANSPORT },
  async (talk) => {
    talk.say("story:two_in_one_step");
    await talk.approveWith("search", { edit: { query: "changed" } });
    await talk.approve("update");
    await talk.ends({
      calls: [
        ["search", "output-available"],
        ["update", "output-available"],
      ],
      effects: { search: 1, update: 1 },
    });
    const [post] = talk.recorder.posts.slice(1);
    const body = (post?.body?.body ?? post?.body) as { edits?: object };
    expect(Object.values(body.edits ?? {})).toEqual([{ query: "changed" }]);
  },
);

story(
  "a yes for the rest of the chat",
  { posts: 2, combinations: EACH_TRANSPORT },
  async (talk) => {
    talk.say("story:five_in_sequence");
    await talk.approveWith("pay", { remember: "chat" });
    await talk.ends({
      calls: Array.from({ length: 5 }, () => ["pay", "output-available"] as const),
      texts: ["All five are settled."],
      effects: { pay: 5 },
    });
    expect(await paid(talk)).toEqual([1, 2, 3, 4, 5]);
  },
);
