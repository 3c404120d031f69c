import { expect } from "vitest";
import { inSequence } from "../harness/matrix.ts";
import { calls } from "../harness/messages.ts";
import { story } from "../harness/story.ts";

story("a tool that fails", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:tool_fails");
  await talk.waitsFor("fails");
  await talk.approve("fails");
  await talk.ends({
    calls: [["fails", "output-error"]],
    texts: ["The tool did not work."],
    effects: { fails: 1 },
  });
});

story("a tool that nobody has", { posts: 1 }, async (talk) => {
  talk.say("story:unknown_tool");
  await talk.ends({
    calls: [["nobody_knows", "output-error"]],
    texts: ["There is no such tool."],
  });
});

story("a model that fails at once", { posts: 1 }, async (talk) => {
  talk.say("story:model_fails");
  await talk.ends({ status: "error" });
  expect(talk.chat.error?.message).toMatch(/\S/);
});

story("a model that fails after an approved call", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:model_fails_later");
  await talk.waitsFor("pay");
  await talk.approve("pay");
  await talk.ends({
    calls: [["pay", "output-available"]],
    effects: { pay: 1 },
    status: "error",
  });
});

story(
  "a model that has nothing to say after an approved call",
  { posts: inSequence(1) },
  async (talk) => {
    talk.say("story:empty");
    await talk.approve("pay");
    await talk.ends({ calls: [["pay", "output-available"]], texts: [], effects: { pay: 1 } });
  },
);

story("the same call again after a denial", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:asks_again");
  await talk.deny("pay", "not today");
  await talk.ends({
    calls: [
      ["pay", "output-denied"],
      ["pay", "output-error"],
    ],
    texts: ["I tried twice."],
  });
  const states = talk.chat.messages.flatMap(calls).map(({ state }) => state);
  expect(states.at(-1)).toBe("output-error");
});
