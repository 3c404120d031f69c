import type { Combination } from "../harness/matrix.ts";
import { EACH_TRANSPORT, EACH_TURN, inSequence } from "../harness/matrix.ts";
import type { RuleName } from "../harness/send-rules.ts";
import { story } from "../harness/story.ts";

const PLACE = { latitude: 48.1, longitude: 11.6 };

/** Whether a rule sends an output without a decision. */
function sendsOutputs(rule: RuleName): boolean {
  return rule === "stock+tool-calls" || rule === "safe";
}

function isStock(rule: RuleName): boolean {
  return rule === "stock" || sendsOutputs(rule);
}

story("a client-side tool", { posts: (rule) => (sendsOutputs(rule) ? 2 : 1) }, async (tab) => {
  tab.send("story:client_tool");
  await tab.addOutput("locate", PLACE);
  const completes = sendsOutputs(tab.combination.rule);
  await tab.expectEnd({
    calls: [["locate", "output-available"]],
    texts: completes ? ["That is where you are."] : [],
    chat: completes ? "ready" : "waiting",
    stored: completes,
    resumes: completes,
  });
});

story("two client-side tools", { posts: (rule) => (sendsOutputs(rule) ? 2 : 1) }, async (tab) => {
  tab.send("story:two_client_tools");
  await tab.addOutput("locate", PLACE);
  await tab.addOutput("locate", PLACE);
  const completes = sendsOutputs(tab.combination.rule);
  await tab.expectEnd({
    calls: [
      ["locate", "output-available"],
      ["locate", "output-available"],
    ],
    texts: completes ? ["That is where you are."] : [],
    chat: completes ? "ready" : "waiting",
    stored: completes,
    resumes: completes,
  });
});

/** Tools as assistant-ui declares them; the server permits `scroll` only. */
const SCROLL = {
  description: "Scroll the page.",
  parameters: { type: "object", properties: { to_place: { type: "string" } } },
};
const ERASE = { description: "Erase the page.", parameters: { type: "object" } };

story(
  "a tool that the request declares",
  { posts: (rule) => (sendsOutputs(rule) ? 2 : 1), combinations: EACH_TURN },
  async (tab) => {
    tab.tools = { erase: ERASE, scroll: SCROLL };
    tab.send("story:page_tool");
    await tab.addOutput("scroll", "at the top");
    const completes = sendsOutputs(tab.combination.rule);
    await tab.expectEnd({
      calls: [["scroll", "output-available"]],
      texts: completes ? ["That is the top."] : [],
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

story(
  "a tool that the request does not declare",
  { posts: 1, combinations: EACH_TRANSPORT },
  async (tab) => {
    tab.tools = { erase: ERASE };
    tab.send("story:page_tool");
    await tab.expectEnd({ calls: [["scroll", "output-error"]], texts: ["That is the top."] });
  },
);

story(
  "a client-side tool beside an approval that is decided first",
  // The S2 rules send the decision immediately, and are blocked by the output after that.
  { posts: 2 },
  async (tab) => {
    tab.send("story:client_tool_beside_gate");
    await tab.approve("pay");
    await tab.addOutput("locate", PLACE);
    const completes = isStock(tab.combination.rule);
    await tab.expectEnd({
      calls: [
        ["locate", "output-available"],
        ["pay", completes ? "output-available" : "approval-responded"],
      ],
      texts: completes ? ["The place is known and the payment settled."] : [],
      effects: completes ? { pay: 1 } : {},
      // In style `confirmation` the early decision is announced again instead of refused (A3).
      status: completes || tab.combination.style === "confirmation" ? "ready" : "error",
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

story(
  "a client-side tool beside an approval that is decided last",
  { posts: (rule) => (isStock(rule) ? 2 : 1) },
  async (tab) => {
    tab.send("story:client_tool_beside_gate");
    await tab.addOutput("locate", PLACE);
    await tab.approve("pay");
    const completes = isStock(tab.combination.rule);
    await tab.expectEnd({
      calls: [
        ["locate", "output-available"],
        ["pay", completes ? "output-available" : "approval-responded"],
      ],
      texts: completes ? ["The place is known and the payment settled."] : [],
      effects: completes ? { pay: 1 } : {},
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

/** In style `confirmation` the decided confirmation makes the S2 rules send once more, in vain. */
function gatedOutputPosts(rule: RuleName, { style }: Combination): number {
  return sendsOutputs(rule) || (style === "confirmation" && !isStock(rule)) ? 3 : 2;
}

story("a gated client-side tool, approved", { posts: gatedOutputPosts }, async (tab) => {
  const { rule, style } = tab.combination;
  tab.send("story:client_tool_gated");
  await tab.expectPending("locate_gated");
  await tab.approve("locate_gated");
  await tab.addOutput("locate_gated", PLACE);
  const completes = sendsOutputs(rule);
  await tab.expectEnd({
    calls: [["locate_gated", "output-available"]],
    texts: completes ? ["The exact place is settled."] : [],
    status: style === "confirmation" && !isStock(rule) ? "error" : "ready",
    chat: completes ? "ready" : "waiting",
    stored: completes,
    resumes: completes,
  });
});

story("a gated client-side tool, denied", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:client_tool_gated");
  await tab.deny("locate_gated");
  await tab.expectEnd({
    calls: [["locate_gated", "output-denied"]],
    texts: ["The exact place is settled."],
  });
});
