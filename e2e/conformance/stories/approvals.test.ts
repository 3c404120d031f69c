import { expect } from "vitest";
import { effectsOf } from "../harness/effects.ts";
import { EVERYWHERE_AND_BIDI, inSequence, together } from "../harness/matrix.ts";
import { story } from "../harness/story.ts";

story(
  "one approval, answered yes",
  { posts: inSequence(1), combinations: EVERYWHERE_AND_BIDI },
  async (talk) => {
    talk.say("story:approval");
    await talk.waitsFor("pay");
    await talk.approve("pay");
    await talk.ends({
      calls: [["pay", "output-available"]],
      texts: ["The payment is settled."],
      effects: { pay: 1 },
    });
  },
);

story("one approval, answered no", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:approval");
  await talk.waitsFor("pay");
  await talk.deny("pay", "too expensive");
  await talk.ends({
    calls: [["pay", "output-denied"]],
    texts: ["The payment is settled."],
  });
  const denied = talk.chat.messages.at(-1)?.parts.find((part) => part.state === "output-denied");
  expect(denied?.approval).toMatchObject({ approved: false, reason: "too expensive" });
});

story("a tool whose arguments are reason to ask", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:asks_when_big");
  await talk.waitsFor("ask_when_big");
  await talk.approve("ask_when_big");
  await talk.ends({
    calls: [["ask_when_big", "output-available"]],
    texts: ["The big payment is settled."],
    effects: { ask_when_big: 1 },
  });
});

story("a tool whose arguments are no reason to ask", { posts: 1 }, async (talk) => {
  talk.say("story:asks_not_when_small");
  await talk.ends({
    calls: [["ask_when_big", "output-available"]],
    texts: ["The small payment is done."],
    effects: { ask_when_big: 1 },
  });
});

story("a tool that asks while it runs", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:asks_dynamically");
  await talk.waitsFor("ask_dynamic");
  await talk.approve("ask_dynamic");
  await talk.ends({
    calls: [["ask_dynamic", "output-available"]],
    texts: ["The payment is settled."],
    effects: { ask_dynamic: 1 },
  });
});

story("two approvals in one step, yes and yes", { posts: together(2) }, async (talk) => {
  talk.say("story:two_in_one_step");
  await talk.waitsFor("search", "update");
  await talk.approve("search", "update");
  await talk.ends({
    calls: [
      ["search", "output-available"],
      ["update", "output-available"],
    ],
    texts: ["Both are settled."],
    effects: { search: 1, update: 1 },
  });
});

story(
  "two approvals in one step, the later answered first",
  { posts: together(2) },
  async (talk) => {
    talk.say("story:two_in_one_step");
    await talk.approve("update", "search");
    await talk.ends({
      calls: [
        ["search", "output-available"],
        ["update", "output-available"],
      ],
      texts: ["Both are settled."],
      effects: { search: 1, update: 1 },
    });
  },
);

story(
  "two approvals in one step, yes and no",
  { posts: together(2), combinations: EVERYWHERE_AND_BIDI },
  async (talk) => {
    talk.say("story:two_in_one_step");
    await talk.approve("search");
    await talk.deny("update");
    await talk.ends({
      calls: [
        ["search", "output-available"],
        ["update", "output-denied"],
      ],
      texts: ["Both are settled."],
      effects: { search: 1 },
    });
  },
);

story(
  "two approvals in one step, the later one no, first",
  { posts: together(2) },
  async (talk) => {
    talk.say("story:two_in_one_step");
    await talk.deny("update");
    await talk.approve("search");
    await talk.ends({
      calls: [
        ["search", "output-available"],
        ["update", "output-denied"],
      ],
      effects: { search: 1 },
    });
  },
);

story(
  "two approvals in sequence",
  { posts: inSequence(2), combinations: EVERYWHERE_AND_BIDI },
  async (talk) => {
    talk.say("story:two_in_sequence");
    await talk.waitsFor("search");
    await talk.approve("search");
    await talk.waitsFor("update");
    await talk.approve("update");
    await talk.ends({
      calls: [
        ["search", "output-available"],
        ["update", "output-available"],
      ],
      texts: ["Both are settled."],
      effects: { search: 1, update: 1 },
    });
  },
);

story("two approvals in sequence, no and yes", { posts: inSequence(2) }, async (talk) => {
  talk.say("story:two_in_sequence");
  await talk.deny("search");
  await talk.waitsFor("update");
  await talk.approve("update");
  await talk.ends({
    calls: [
      ["search", "output-denied"],
      ["update", "output-available"],
    ],
    effects: { update: 1 },
  });
});

story("five approvals in sequence", { posts: inSequence(5) }, async (talk) => {
  talk.say("story:five_in_sequence");
  await talk.approve("pay", "pay", "pay", "pay", "pay");
  await talk.ends({
    calls: Array.from({ length: 5 }, () => ["pay", "output-available"] as const),
    texts: ["All five are settled."],
    effects: { pay: 5 },
  });
  const effects = await effectsOf(talk.place, talk.chatId);
  expect(effects.map(({ args }) => args.amount)).toEqual([1, 2, 3, 4, 5]);
});

story(
  "a call that asks beside one that does not",
  { posts: inSequence(1), combinations: EVERYWHERE_AND_BIDI },
  async (talk) => {
    talk.say("story:gated_beside_ungated");
    await talk.waitsFor("pay");
    await talk.approve("pay");
    await talk.ends({
      calls: [
        ["lookup", "output-available"],
        ["pay", "output-available"],
      ],
      texts: ["The word is known and the payment settled."],
      effects: { lookup: 1, pay: 1 },
    });
  },
);

story(
  "text before, between and after two approvals",
  { posts: inSequence(2), combinations: EVERYWHERE_AND_BIDI },
  async (talk) => {
    talk.say("story:text_around");
    await talk.waitsFor("search");
    await talk.approve("search");
    await talk.waitsFor("pay");
    await talk.approve("pay");
    await talk.ends({
      calls: [
        ["search", "output-available"],
        ["pay", "output-available"],
      ],
      texts: ["Before the search. ", "Between the two. ", "After the payment."],
      effects: { search: 1, pay: 1 },
    });
  },
);
