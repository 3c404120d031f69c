/** One agent of each kind of ADK's samples, served with gated tools and approved. */

import { expect } from "vitest";
import { EACH_SAMPLE, inSequence, OVER_LIVE } from "../harness/matrix.ts";
import { effectsOf } from "../harness/servers.ts";
import { type StoryTab, story } from "../harness/story.ts";

const combinations = EACH_SAMPLE;

async function argumentsOf(tab: StoryTab, tool: string): Promise<unknown[]> {
  const effects = await effectsOf(tab.server, tab.chatId);
  return effects.filter((effect) => effect.tool === tool).map(({ args }) => args);
}

story(
  "a coordinator that hands over to a sequence, approved",
  { sample: "coordinator", posts: inSequence(1), combinations },
  async (tab) => {
    tab.send("story:coordinator");
    await tab.expectPending("buy_ticket");
    await tab.approve("buy_ticket");
    await tab.expectEnd({
      calls: [
        ["find_train", "output-available"],
        ["buy_ticket", "output-available"],
      ],
      texts: [
        "I hand over. ",
        "There is a train. ",
        "The purchase is settled. ",
        "Have a good journey.",
      ],
      effects: { find_train: 1, buy_ticket: 1 },
    });
  },
);

story(
  "a coordinator that hands over to a sequence, denied",
  { sample: "coordinator", posts: inSequence(1), combinations },
  async (tab) => {
    tab.send("story:coordinator");
    await tab.expectPending("buy_ticket");
    await tab.deny("buy_ticket", "too expensive");
    await tab.expectEnd({
      calls: [
        ["find_train", "output-available"],
        ["buy_ticket", "output-denied"],
      ],
      effects: { find_train: 1 },
    });
  },
);

story(
  "an agent that is a tool, with a gated tool of its own",
  { sample: "agent_as_tool", posts: inSequence(1), combinations },
  async (tab) => {
    tab.send("story:agent_as_tool");
    await tab.expectPending("buy_article");
    await tab.approve("buy_article");
    await tab.expectEnd({
      calls: [
        ["researcher", "output-available"],
        ["buy_article", "output-available"],
      ],
      texts: ["The article is written."],
      effects: { buy_article: 1 },
    });
  },
);

story(
  "a loop that asks in each round until its reviewer ends it",
  { sample: "loop", posts: inSequence(2), combinations },
  async (tab) => {
    tab.send("story:loop");
    await tab.expectPending("save_draft");
    await tab.approve("save_draft");
    await tab.expectPending("save_draft");
    await tab.approve("save_draft");
    await tab.expectEnd({
      calls: [
        ["save_draft", "output-available"],
        ["save_draft", "output-available"],
        ["exit_loop", "output-available"],
      ],
      texts: [
        "The first version. ",
        "It needs an end. ",
        "The second version. ",
        "The essay is published.",
      ],
      effects: { save_draft: 2 },
    });
    expect(await argumentsOf(tab, "save_draft")).toEqual([{ version: 1 }, { version: 2 }]);
  },
);

story(
  "a small expense, which needs no approval",
  { sample: "human_in_the_loop", posts: 1, combinations },
  async (tab) => {
    tab.send("story:small");
    await tab.expectEnd({
      calls: [["reimburse", "output-available"]],
      texts: ["The lunch is reimbursed."],
      effects: { reimburse: 1 },
    });
  },
);

story(
  "a large expense, which needs approval",
  {
    sample: "human_in_the_loop",
    posts: inSequence(1),
    combinations: [...combinations, ...OVER_LIVE],
  },
  async (tab) => {
    tab.send("story:large");
    await tab.expectPending("reimburse");
    await tab.approve("reimburse");
    await tab.expectEnd({
      calls: [["reimburse", "output-available"]],
      texts: ["The flight is settled."],
      effects: { reimburse: 1 },
    });
  },
);

story(
  "days off, of which the manager approves some",
  { sample: "human_in_the_loop", posts: inSequence(1), combinations },
  async (tab) => {
    tab.send("story:time_off");
    await tab.expectPending("request_time_off");
    await tab.approveWith("request_time_off", { payload: { approved_days: 3 } });
    await tab.expectEnd({
      calls: [["request_time_off", "output-available"]],
      texts: ["The days are settled."],
      effects: { request_time_off: 1 },
    });
    expect(await argumentsOf(tab, "request_time_off")).toEqual([{ approved_days: 3 }]);
  },
);

story(
  "a manager who answers elsewhere, and an approval after it",
  { sample: "human_in_the_loop", posts: inSequence(2), combinations },
  async (tab) => {
    tab.send("story:manager");
    await tab.addOutput("ask_manager", { status: "approved", ticket: "R-1" });
    await tab.expectPending("reimburse");
    await tab.approve("reimburse");
    await tab.expectEnd({
      calls: [
        ["ask_manager", "output-available"],
        ["reimburse", "output-available"],
      ],
      texts: ["The hotel is settled."],
      effects: { reimburse: 1 },
    });
  },
);

story(
  "a Workflow that asks for input, by an agent and by a node",
  { sample: "workflow", posts: inSequence(3), combinations },
  async (tab) => {
    tab.send("story:workflow");
    await tab.addOutput("adk_request_input", 7);
    await tab.expectPending("file_receipt");
    await tab.approve("file_receipt");
    await tab.expectPending("pay_out");
    await tab.approve("pay_out");
    await tab.expectEnd({
      calls: [
        ["adk_request_input", "output-available"],
        ["file_receipt", "output-available"],
        ["pay_out", "output-available"],
      ],
      texts: ["The receipt is filed. ", "The payment is settled."],
      effects: { file_receipt: 1, pay_out: 1 },
    });
  },
);

story(
  "two agents at once, one of which asks the page",
  {
    sample: "together",
    posts: 3,
    // In style `confirmation` the order of the cards is that of the agents, which run at once.
    combinations: combinations.filter(({ style }) => style === "call"),
  },
  async (tab) => {
    tab.send("story:together");
    await tab.expectPending("locate", "pay_out");
    await tab.approve("pay_out");
    await tab.approve("locate");
    await tab.addOutput("locate", { latitude: 48.1, longitude: 11.6 });
    await tab.expectEnd({
      calls: [
        ["pay_out", "output-available"],
        ["locate", "output-available"],
      ],
      effects: { pay_out: 1 },
    });
  },
);
