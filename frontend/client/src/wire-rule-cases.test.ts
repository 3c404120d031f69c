import { describe, expect, test } from "vitest";
import { CLIENT_VARIANTS } from "../testing/ai-sdk-versions.ts";
import { MAX_POSTS, ScriptedChat } from "../testing/scripted-chat.ts";
import { type Action, ROWS } from "../testing/wire-rule-cases.ts";
import { pendingApprovals } from "./pending-approvals.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const RULES = [
  { rule: "safe", options: {} },
  { rule: "named", options: { clientTools: ["locate"] } },
];

async function perform(scripted: ScriptedChat, action: Action): Promise<void> {
  if ("approve" in action) await scripted.decide(action.approve);
  else if ("deny" in action) await scripted.decide(action.deny, false);
  else await scripted.addOutput(action.output, { latitude: 48.1 });
}

describe.each([...CLIENT_VARIANTS])("a client of ai $version over $over", ({ version, over }) => {
  const rows = ROWS.filter((row) => version.startsWith("7") || row.only7 !== true);

  describe.each(RULES)("with the rule $rule", ({ options }) => {
    test.each(rows)("$rule: $shape", async ({ responses, actions, posts, states }) => {
      const rule = sendAutomaticallyWhen(options);
      const scripted = new ScriptedChat({ version, over, rule, responses });
      await scripted.send("Go.");
      const counts = [scripted.posts];
      for (const action of actions) {
        await perform(scripted, action);
        counts.push(scripted.posts);
      }

      expect(counts).toEqual(posts);
      expect(scripted.states).toEqual(states);
      expect(pendingApprovals(scripted.chat.messages)).toEqual([]);
      expect(scripted.posts).toBeLessThanOrEqual(Math.min(actions.length + 1, MAX_POSTS));
    });
  });
});
