import { expect } from "vitest";
import { EVERY_RELEASE } from "../harness/matrix.ts";
import { calls, type Part } from "../harness/messages.ts";
import { story, type Talk } from "../harness/story.ts";

const combinations = EVERY_RELEASE;

function parts(talk: Talk, type: string): Part[] {
  return (talk.chat.messages.at(-1)?.parts ?? []).filter((part) => part.type === type);
}

story("an answer that leans on sources", { posts: 1, combinations }, async (talk) => {
  talk.say("story:sources");
  await talk.ends({ texts: ["A sluice is a gate."] });
  expect(parts(talk, "source-url")).toEqual([
    expect.objectContaining({ url: "https://example.com/sluice", title: "Sluice" }),
  ]);
  expect(parts(talk, "source-document")).toEqual([expect.objectContaining({ title: "Canals" })]);
});

story("a picture by the model", { posts: 1, combinations }, async (talk) => {
  talk.say("story:image");
  await talk.ends({ texts: ["Here it is: "] });
  const [file, ...others] = parts(talk, "file");
  expect(others).toEqual([]);
  expect(file).toMatchObject({ mediaType: "image/png" });
  const url = new URL(String(file?.url), talk.place.url);
  const mine = await fetch(url, { headers: talk.headers });
  expect([mine.status, mine.headers.get("content-type")]).toEqual([200, "image/png"]);
  expect((await mine.arrayBuffer()).byteLength).toBeGreaterThan(60);
  const theirs = await fetch(url, { headers: { ...talk.headers, "x-user": "somebody-else" } });
  expect(theirs.status).toBe(404);
});

story("code that the model has run", { posts: 1, combinations }, async (talk) => {
  talk.say("story:code");
  await talk.ends({ calls: [["code_execution", "output-available"]], texts: ["It is four."] });
  const [run] = (talk.chat.messages.at(-1)?.parts ?? []).filter(
    ({ type }) => type === "dynamic-tool",
  );
  expect(run).toMatchObject({ providerExecuted: true, input: { code: "print(2 + 2)" } });
});

story("an answer that is cut at the token limit", { posts: 1, combinations }, async (talk) => {
  talk.say("story:cut");
  await talk.ends({ texts: ["This sentence is too long to"] });
  expect(talk.recorder.posts[0]?.chunks.at(-1)).toMatchObject({ finishReason: "length" });
});

story("arguments that arrive in pieces", { posts: 2, combinations }, async (talk) => {
  talk.say("story:streamed_arguments");
  await talk.waitsFor("search");
  await talk.approve("search");
  await talk.ends({
    calls: [["search", "output-available"]],
    texts: ["The search is settled."],
    effects: { search: 1 },
  });
  const inputs = talk.chat.messages.flatMap(calls).map(({ part }) => part.input);
  expect(inputs).toEqual([{ query: "all users of this month" }]);
});

story(
  "more requests in one step than a turn may make",
  { posts: 2, combinations },
  async (talk) => {
    talk.say("story:eleven_in_one_step");
    await talk.approve(...Array.from({ length: 10 }, () => "pay"));
    await talk.ends({
      calls: [
        ...Array.from({ length: 10 }, () => ["pay", "output-available"] as const),
        ["pay", "output-error"],
      ],
      texts: ["All eleven are settled."],
      effects: { pay: 10 },
    });
  },
);

const once = combinations.filter(({ style }) => style === "call");

story(
  "more requests than an exchange may make",
  { posts: 21, combinations: once },
  async (talk) => {
    talk.say("story:twenty_one_in_sequence");
    await talk.approve(...Array.from({ length: 20 }, () => "pay"));
    await talk.ends({
      calls: [
        ...Array.from({ length: 20 }, () => ["pay", "output-available"] as const),
        ["pay", "output-error"],
      ],
      texts: ["All of them are settled."],
      effects: { pay: 20 },
    });
  },
);
