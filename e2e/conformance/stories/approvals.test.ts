import { expect } from "vitest";
import { CLOSED_LATER, EVERYWHERE_AND_BIDI, inSequence, together } from "../harness/matrix.ts";
import { effectsOf } from "../harness/servers.ts";
import { type StoryOptions, story } from "../harness/story.ts";

story(
  "one gated call, approved",
  { posts: inSequence(1), combinations: EVERYWHERE_AND_BIDI },
  async (tab) => {
    tab.send("story:approval");
    await tab.expectPending("pay");
    await tab.approve("pay");
    await tab.expectEnd({
      calls: [["pay", "output-available"]],
      texts: ["The payment is settled."],
      effects: { pay: 1 },
    });
  },
);

story("one gated call, denied", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:approval");
  await tab.expectPending("pay");
  await tab.deny("pay", "too expensive");
  await tab.expectEnd({
    calls: [["pay", "output-denied"]],
    texts: ["The payment is settled."],
  });
  const denied = tab.chat.messages.at(-1)?.parts.find((part) => part.state === "output-denied");
  expect(denied?.approval).toMatchObject({ approved: false, reason: "too expensive" });
});

story("a tool whose arguments require approval", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:asks_when_big");
  await tab.expectPending("ask_when_big");
  await tab.approve("ask_when_big");
  await tab.expectEnd({
    calls: [["ask_when_big", "output-available"]],
    texts: ["The big payment is settled."],
    effects: { ask_when_big: 1 },
  });
});

story("a tool whose arguments require no approval", { posts: 1 }, async (tab) => {
  tab.send("story:asks_not_when_small");
  await tab.expectEnd({
    calls: [["ask_when_big", "output-available"]],
    texts: ["The small payment is done."],
    effects: { ask_when_big: 1 },
  });
});

story("a tool that requests confirmation while it runs", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:asks_dynamically");
  await tab.expectPending("ask_dynamic");
  await tab.approve("ask_dynamic");
  await tab.expectEnd({
    calls: [["ask_dynamic", "output-available"]],
    texts: ["The payment is settled."],
    effects: { ask_dynamic: 1 },
  });
});

// A live call is asked about once. The literal S2-SSE rule sends early only where a new part asks.
const twice: StoryOptions = {
  posts: (rule, { style }) =>
    rule === "s2-sse" && style === "call" ? 3 : inSequence(2)(rule, { style }),
  combinations: CLOSED_LATER,
};

story("a tool that asks again after its first approval", twice, async (tab) => {
  tab.send("story:asks_twice");
  await tab.expectPending("ask_twice");
  await tab.approve("ask_twice");
  await tab.expectPending("ask_twice");
  await tab.approveWith("ask_twice", { payload: { payee: "Grace" } });
  await tab.expectEnd({
    calls: [["ask_twice", "output-available"]],
    texts: ["Two questions. ", "The payment is settled."],
    effects: { ask_twice: 1 },
  });
  const [effect] = await effectsOf(tab.server, tab.chatId);
  expect(effect?.args).toEqual({ amount: 5, payee: "Grace" });
});

story("a tool that asks again, denied then", twice, async (tab) => {
  tab.send("story:asks_twice");
  await tab.approve("ask_twice");
  await tab.expectPending("ask_twice");
  await tab.deny("ask_twice", "not her");
  await tab.expectEnd({ calls: [["ask_twice", "output-denied"]] });
});

story("two gated calls in one step, both approved", { posts: together(2) }, async (tab) => {
  tab.send("story:two_in_one_step");
  await tab.expectPending("search", "update");
  await tab.approve("search", "update");
  await tab.expectEnd({
    calls: [
      ["search", "output-available"],
      ["update", "output-available"],
    ],
    texts: ["Both are settled."],
    effects: { search: 1, update: 1 },
  });
});

story(
  "two gated calls in one step, the second decided first",
  { posts: together(2) },
  async (tab) => {
    tab.send("story:two_in_one_step");
    await tab.approve("update", "search");
    await tab.expectEnd({
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
  "two gated calls in one step, approved and denied",
  { posts: together(2), combinations: EVERYWHERE_AND_BIDI },
  async (tab) => {
    tab.send("story:two_in_one_step");
    await tab.approve("search");
    await tab.deny("update");
    await tab.expectEnd({
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
  "two gated calls in one step, the second denied first",
  { posts: together(2) },
  async (tab) => {
    tab.send("story:two_in_one_step");
    await tab.deny("update");
    await tab.approve("search");
    await tab.expectEnd({
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
  async (tab) => {
    tab.send("story:two_in_sequence");
    await tab.expectPending("search");
    await tab.approve("search");
    await tab.expectPending("update");
    await tab.approve("update");
    await tab.expectEnd({
      calls: [
        ["search", "output-available"],
        ["update", "output-available"],
      ],
      texts: ["Both are settled."],
      effects: { search: 1, update: 1 },
    });
  },
);

story("two approvals in sequence, denied and approved", { posts: inSequence(2) }, async (tab) => {
  tab.send("story:two_in_sequence");
  await tab.deny("search");
  await tab.expectPending("update");
  await tab.approve("update");
  await tab.expectEnd({
    calls: [
      ["search", "output-denied"],
      ["update", "output-available"],
    ],
    effects: { update: 1 },
  });
});

story("five approvals in sequence", { posts: inSequence(5) }, async (tab) => {
  tab.send("story:five_in_sequence");
  await tab.approve("pay", "pay", "pay", "pay", "pay");
  await tab.expectEnd({
    calls: Array.from({ length: 5 }, () => ["pay", "output-available"] as const),
    texts: ["All five are settled."],
    effects: { pay: 5 },
  });
  const effects = await effectsOf(tab.server, tab.chatId);
  expect(effects.map(({ args }) => args.amount)).toEqual([1, 2, 3, 4, 5]);
});

story(
  "a gated call beside an ungated one",
  { posts: inSequence(1), combinations: EVERYWHERE_AND_BIDI },
  async (tab) => {
    tab.send("story:gated_beside_ungated");
    await tab.expectPending("pay");
    await tab.approve("pay");
    await tab.expectEnd({
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
  async (tab) => {
    tab.send("story:text_around");
    await tab.expectPending("search");
    await tab.approve("search");
    await tab.expectPending("pay");
    await tab.approve("pay");
    await tab.expectEnd({
      calls: [
        ["search", "output-available"],
        ["pay", "output-available"],
      ],
      texts: ["Before the search. ", "Between the two. ", "After the payment."],
      effects: { search: 1, pay: 1 },
    });
  },
);

story(
  "results that say what happened, and a silent model",
  { posts: inSequence(2), combinations: EVERYWHERE_AND_BIDI },
  async (tab) => {
    tab.send("story:silent");
    await tab.expectPending("notify");
    await tab.approve("notify", "notify");
    // A response begins a step, so only held messages can share a block.
    const isHeld = tab.combination.release !== "progressive";
    await tab.expectEnd({
      calls: [
        ["notify", "output-available"],
        ["notify", "output-available"],
      ],
      texts: isHeld
        ? ["Ada was notified.\n\nBo was notified."]
        : ["Ada was notified.", "Bo was notified."],
      effects: { notify: 2 },
    });
  },
);
