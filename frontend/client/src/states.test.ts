import { describe, expect, test } from "vitest";
import { ANSWER, turn } from "../testing/chunks.ts";
import { expected, KINDS, type Kind, message, RULES } from "../testing/kinds.ts";
import { ScriptedChat, WAYS, type Way } from "../testing/scripted-chat.ts";
import type { ChatMessage } from "./messages.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const STEP = { type: "step-start" };
/** Calls, each beside itself and each other one. */
const CALLS = KINDS.filter(({ part }) => part.type.includes("tool"));
const PAIRS = CALLS.flatMap((one, at) => CALLS.slice(at).map((other) => [one, other] as const));

/** Every part with what a page that was loaded with it would hold. */
function loaded(...parts: readonly Kind["part"][]): ChatMessage[] {
  return message(
    ...parts.map((part) => ({
      ...part,
      ...(part.state && part.type !== "text" && { input: {}, output: {}, errorText: "It failed." }),
      ...(part.type === "text" && { text: "Words." }),
    })),
  ).messages;
}

/**
 * How often a chat posts that holds these parts and has just heard a response that changes
 * nothing: once for that response, and once more if the rule says so. The next response is words.
 */
async function posts(way: Way, names: object, parts: readonly Kind["part"][]): Promise<number> {
  const scripted = new ScriptedChat({
    ...way,
    rule: sendAutomaticallyWhen(names),
    responses: [turn(), turn(ANSWER)],
    messages: loaded(...parts),
  });
  await scripted.goOn();
  expect(scripted.chat.status).toBe("ready");
  return scripted.posts;
}

describe.each(RULES)("the rule $name", ({ names, at }) => {
  test.each([...WAYS])("posts for each part, ai $version over $over", async (way) => {
    for (const { kind, part, last, earlier } of KINDS) {
      const inLast = 1 + Number(expected(last[at]));
      expect(await posts(way, names, [STEP, part]), kind).toBe(inLast);
      expect(await posts(way, names, [part]), kind).toBe(inLast);
      const inEarlier = 1 + Number(expected(earlier[at]));
      expect(await posts(way, names, [STEP, part, STEP]), kind).toBe(inEarlier);
    }
  });

  test.each(["6", "7"] as const)(
    "posts for each pair of calls, ai %s",
    { timeout: 60_000 },
    async (version) => {
      for (const [one, other] of PAIRS) {
        const pair = `${one.kind} and ${other.kind}`;
        const together = 1 + Number(expected(one.last[at], other.last[at]));
        const way = { version, over: "sse" } as const;
        expect(await posts(way, names, [STEP, one.part, other.part]), pair).toBe(together);
        const apart = 1 + Number(expected(one.earlier[at], other.last[at]));
        expect(await posts(way, names, [STEP, one.part, STEP, other.part]), pair).toBe(apart);
      }
    },
  );
});
