import { expect } from "vitest";
import { inSequence } from "../harness/matrix.ts";
import { calls } from "../harness/messages.ts";
import { story } from "../harness/story.ts";

story("a tool that fails", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:tool_fails");
  await tab.expectPending("fails");
  await tab.approve("fails");
  await tab.expectEnd({
    calls: [["fails", "output-error"]],
    texts: ["The tool did not work."],
    effects: { fails: 1 },
  });
});

story("an unknown tool", { posts: 1 }, async (tab) => {
  tab.send("story:unknown_tool");
  await tab.expectEnd({
    calls: [["nobody_knows", "output-error"]],
    texts: ["There is no such tool."],
  });
});

story("a model that fails immediately", { posts: 1 }, async (tab) => {
  tab.send("story:model_fails");
  await tab.expectEnd({ status: "error" });
  expect(tab.chat.error?.message).toMatch(/\S/);
});

story("a model that fails after an approved call", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:model_fails_later");
  await tab.expectPending("pay");
  await tab.approve("pay");
  await tab.expectEnd({
    calls: [["pay", "output-available"]],
    effects: { pay: 1 },
    status: "error",
  });
});

story("an empty model response after an approved call", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:empty");
  await tab.approve("pay");
  await tab.expectEnd({ calls: [["pay", "output-available"]], texts: [], effects: { pay: 1 } });
});

story("the same call again after a denial", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:asks_again");
  await tab.deny("pay", "not today");
  await tab.expectEnd({
    calls: [
      ["pay", "output-denied"],
      ["pay", "output-error"],
    ],
    texts: ["I tried twice."],
  });
  const states = tab.chat.messages.flatMap(calls).map(({ state }) => state);
  expect(states.at(-1)).toBe("output-error");
});
