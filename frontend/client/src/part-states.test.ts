import { describe, expect, test } from "vitest";
import { CLIENT_VARIANTS, type ClientVariant } from "../testing/ai-sdk-versions.ts";
import { ScriptedChat } from "../testing/scripted-chat.ts";
import { expected, KINDS, type Kind, message, RULES } from "../testing/send-rule-cases.ts";
import type { ChatMessage } from "./message-parts.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";
import { ANSWER, turn } from "./testing/chunks.ts";

const STEP = { type: "step-start" };
/** Every pair of calls, including each call with itself. */
const CALLS = KINDS.filter(({ part }) => part.type.includes("tool"));
const PAIRS = CALLS.flatMap((one, at) => CALLS.slice(at).map((other) => [one, other] as const));

/** The messages of a page that was loaded with these parts. */
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
 * The number of posts of a chat with these parts after a response that changes nothing: one for that
 * response, and one more if the rule returns true. The second response is text.
 */
async function posts(
  way: ClientVariant,
  options: object,
  parts: readonly Kind["part"][],
): Promise<number> {
  const scripted = new ScriptedChat({
    ...way,
    rule: sendAutomaticallyWhen(options),
    responses: [turn(), turn(ANSWER)],
    messages: loaded(...parts),
  });
  await scripted.resend();
  expect(scripted.chat.status).toBe("ready");
  return scripted.posts;
}

describe.each(RULES)("the rule $name", ({ options, column }) => {
  test.each([...CLIENT_VARIANTS])(
    "posts for each kind of part, ai $version over $over",
    async (way) => {
      for (const { kind, part, last, earlier } of KINDS) {
        const inLast = 1 + Number(expected(last[column]));
        expect(await posts(way, options, [STEP, part]), kind).toBe(inLast);
        expect(await posts(way, options, [part]), kind).toBe(inLast);
        const inEarlier = 1 + Number(expected(earlier[column]));
        expect(await posts(way, options, [STEP, part, STEP]), kind).toBe(inEarlier);
      }
    },
  );

  test.each(["6", "7"] as const)("posts for each pair of calls, ai %s", async (version) => {
    for (const [one, other] of PAIRS) {
      const pair = `${one.kind} and ${other.kind}`;
      const together = 1 + Number(expected(one.last[column], other.last[column]));
      const way = { version, over: "sse" } as const;
      expect(await posts(way, options, [STEP, one.part, other.part]), pair).toBe(together);
      const apart = 1 + Number(expected(one.earlier[column], other.last[column]));
      expect(await posts(way, options, [STEP, one.part, STEP, other.part]), pair).toBe(apart);
    }
  });
});
