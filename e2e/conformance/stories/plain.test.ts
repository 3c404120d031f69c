import { expect } from "vitest";
import { story } from "../harness/story.ts";

story("plain text", { posts: 1 }, async (talk) => {
  talk.say("story:plain");
  await talk.ends({ texts: ["Here is a plain answer."] });
});

story("reasoning before the text", { posts: 1 }, async (talk) => {
  talk.say("story:reasoning");
  await talk.ends({ texts: ["Then the answer."] });
  const reasoning = talk.chat.messages.at(-1)?.parts.filter((part) => part.type === "reasoning");
  expect(reasoning?.map((part) => part.text)).toEqual(["First this thought. "]);
});

story("a tool that asks nobody", { posts: 1 }, async (talk) => {
  talk.say("story:one_tool");
  await talk.ends({
    calls: [["lookup", "output-available"]],
    texts: ["A sluice is a gate."],
    effects: { lookup: 1 },
  });
});

story("two exchanges in one chat", { posts: 2 }, async (talk) => {
  talk.say("story:one_tool");
  await talk.rests(1);
  talk.say("story:plain");
  await talk.ends({
    messages: 2,
    calls: [["lookup", "output-available"]],
    texts: ["A sluice is a gate.", "Here is a plain answer."],
    effects: { lookup: 1 },
  });
});
