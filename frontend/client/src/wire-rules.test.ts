import { describe, expect, test } from "vitest";
import { MOST_POSTS, ScriptedChat, WAYS } from "../testing/scripted-chat.ts";
import { type Act, ROWS } from "../testing/wire-rows.ts";
import { pendingApprovals } from "./pending-approvals.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const RULES = [
  { rule: "safe", options: {} },
  { rule: "named", options: { clientTools: ["locate"] } },
];

async function act(scripted: ScriptedChat, done: Act): Promise<void> {
  if ("yes" in done) await scripted.answer(done.yes);
  else if ("no" in done) await scripted.answer(done.no, false);
  else await scripted.give(done.give, { latitude: 48.1 });
}

describe.each([...WAYS])("a client of ai $version over $over", ({ version, over }) => {
  const rows = ROWS.filter((row) => version.startsWith("7") || row.only7 !== true);

  describe.each(RULES)("with the rule $rule", ({ options }) => {
    test.each(rows)("$promise: $shape", async ({ responses, acts, posts, states }) => {
      const rule = sendAutomaticallyWhen(options);
      const scripted = new ScriptedChat({ version, over, rule, responses });
      await scripted.say("Go.");
      const seen = [scripted.posts];
      for (const done of acts) {
        await act(scripted, done);
        seen.push(scripted.posts);
      }

      expect(seen).toEqual(posts);
      expect(scripted.states).toEqual(states);
      expect(pendingApprovals(scripted.chat.messages)).toEqual([]);
      expect(scripted.posts).toBeLessThanOrEqual(Math.min(acts.length + 1, MOST_POSTS));
    });
  });
});
