import { expect } from "vitest";
import { story } from "../harness/story.ts";

story("plain text", { posts: 1 }, async (tab) => {
  tab.send("story:plain");
  await tab.expectEnd({ texts: ["Here is a plain answer."] });
});

story("reasoning before the text", { posts: 1 }, async (tab) => {
  tab.send("story:reasoning");
  await tab.expectEnd({ texts: ["Then the answer."] });
  const reasoning = tab.chat.messages.at(-1)?.parts.filter((part) => part.type === "reasoning");
  expect(reasoning?.map((part) => part.text)).toEqual(["First this thought. "]);
});

story("an ungated tool", { posts: 1 }, async (tab) => {
  tab.send("story:one_tool");
  await tab.expectEnd({
    calls: [["lookup", "output-available"]],
    texts: ["A sluice is a gate."],
    effects: { lookup: 1 },
  });
});

story("two exchanges in one chat", { posts: 2 }, async (tab) => {
  tab.send("story:one_tool");
  await tab.waitForPosts(1);
  tab.send("story:plain");
  await tab.expectEnd({
    messages: 2,
    calls: [["lookup", "output-available"]],
    texts: ["A sluice is a gate.", "Here is a plain answer."],
    effects: { lookup: 1 },
  });
});
