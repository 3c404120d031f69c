import type { Combination, Rule } from "../harness/matrix.ts";
import { EACH_TRANSPORT, EACH_TURN, inSequence } from "../harness/matrix.ts";
import { story } from "../harness/story.ts";

const PLACE = { latitude: 48.1, longitude: 11.6 };

/** Only these send an output that no approval goes with. */
function sendsOutputs(rule: Rule): boolean {
  return rule === "stock+tool-calls" || rule === "safe";
}

function isStock(rule: Rule): boolean {
  return rule === "stock" || sendsOutputs(rule);
}

story("a tool of the browser", { posts: (rule) => (sendsOutputs(rule) ? 2 : 1) }, async (talk) => {
  talk.say("story:client_tool");
  await talk.output("locate", PLACE);
  const completes = sendsOutputs(talk.combination.rule);
  await talk.ends({
    calls: [["locate", "output-available"]],
    texts: completes ? ["That is where you are."] : [],
    chat: completes ? "ready" : "waiting",
    stored: completes,
    resumes: completes,
  });
});

story(
  "two tools of the browser",
  { posts: (rule) => (sendsOutputs(rule) ? 2 : 1) },
  async (talk) => {
    talk.say("story:two_client_tools");
    await talk.output("locate", PLACE);
    await talk.output("locate", PLACE);
    const completes = sendsOutputs(talk.combination.rule);
    await talk.ends({
      calls: [
        ["locate", "output-available"],
        ["locate", "output-available"],
      ],
      texts: completes ? ["That is where you are."] : [],
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

/** As assistant-ui sends what a page offers; the server lets it bring `scroll` alone. */
const SCROLL = {
  description: "Scroll the page.",
  parameters: { type: "object", properties: { to_place: { type: "string" } } },
};
const ERASE = { description: "Erase the page.", parameters: { type: "object" } };

story(
  "a tool that the page brings along",
  { posts: (rule) => (sendsOutputs(rule) ? 2 : 1), combinations: EACH_TURN },
  async (talk) => {
    talk.tools = { erase: ERASE, scroll: SCROLL };
    talk.say("story:page_tool");
    await talk.output("scroll", "at the top");
    const completes = sendsOutputs(talk.combination.rule);
    await talk.ends({
      calls: [["scroll", "output-available"]],
      texts: completes ? ["That is the top."] : [],
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

story(
  "a tool that the page has not brought along",
  { posts: 1, combinations: EACH_TRANSPORT },
  async (talk) => {
    talk.tools = { erase: ERASE };
    talk.say("story:page_tool");
    await talk.ends({ calls: [["scroll", "output-error"]], texts: ["That is the top."] });
  },
);

story(
  "a tool of the browser beside a request that is answered first",
  // The S2 rules send the answer at once, are told what is open, and are then blocked by the output.
  { posts: 2 },
  async (talk) => {
    talk.say("story:client_tool_beside_gate");
    await talk.approve("pay");
    await talk.output("locate", PLACE);
    const completes = isStock(talk.combination.rule);
    await talk.ends({
      calls: [
        ["locate", "output-available"],
        ["pay", completes ? "output-available" : "approval-responded"],
      ],
      texts: completes ? ["The place is known and the payment settled."] : [],
      effects: completes ? { pay: 1 } : {},
      status: completes ? "ready" : "error",
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

story(
  "a tool of the browser beside a request that is answered last",
  { posts: (rule) => (isStock(rule) ? 2 : 1) },
  async (talk) => {
    talk.say("story:client_tool_beside_gate");
    await talk.output("locate", PLACE);
    await talk.approve("pay");
    const completes = isStock(talk.combination.rule);
    await talk.ends({
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

/** In style `confirmation` the answered card lets the S2 rules send once more, in vain. */
function gatedOutputPosts(rule: Rule, { style }: Combination): number {
  return sendsOutputs(rule) || (style === "confirmation" && !isStock(rule)) ? 3 : 2;
}

story(
  "a tool of the browser that asks, answered yes",
  { posts: gatedOutputPosts },
  async (talk) => {
    const { rule, style } = talk.combination;
    talk.say("story:client_tool_gated");
    await talk.waitsFor("locate_gated");
    await talk.approve("locate_gated");
    await talk.output("locate_gated", PLACE);
    const completes = sendsOutputs(rule);
    await talk.ends({
      calls: [["locate_gated", "output-available"]],
      texts: completes ? ["The exact place is settled."] : [],
      status: style === "confirmation" && !isStock(rule) ? "error" : "ready",
      chat: completes ? "ready" : "waiting",
      stored: completes,
      resumes: completes,
    });
  },
);

story("a tool of the browser that asks, answered no", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:client_tool_gated");
  await talk.deny("locate_gated");
  await talk.ends({
    calls: [["locate_gated", "output-denied"]],
    texts: ["The exact place is settled."],
  });
});
