import { S2_ON_PROGRESSIVE } from "../harness/matrix.ts";
import { story } from "../harness/story.ts";

// The S2 rules treat any text and any finished call as the end of an exchange. The release policy
// `progressive` sends both before the last approval request, so the last decision is never sent.

story(
  "the S2 rules with progressive release stop at the second of two gated calls",
  { posts: 2, combinations: S2_ON_PROGRESSIVE },
  async (tab) => {
    tab.send("story:two_in_sequence");
    await tab.approve("search", "update");
    await tab.expectEnd({
      calls: [
        ["search", "output-available"],
        ["update", "approval-responded"],
      ],
      effects: { search: 1 },
      chat: "waiting",
      stored: false,
      resumes: false,
    });
  },
);

story(
  "the S2 rules with progressive release stop at the second of five gated calls",
  { posts: 2, combinations: S2_ON_PROGRESSIVE },
  async (tab) => {
    tab.send("story:five_in_sequence");
    await tab.approve("pay", "pay");
    await tab.expectEnd({
      calls: [
        ["pay", "output-available"],
        ["pay", "approval-responded"],
      ],
      effects: { pay: 1 },
      chat: "waiting",
      stored: false,
      resumes: false,
    });
  },
);

story(
  "the S2 rules with progressive release stop after text before the first approval",
  { posts: 1, combinations: S2_ON_PROGRESSIVE },
  async (tab) => {
    tab.send("story:text_around");
    await tab.approve("search");
    await tab.expectEnd({
      calls: [["search", "approval-responded"]],
      chat: "waiting",
      stored: false,
      resumes: false,
    });
  },
);

story(
  "the S2 rules with progressive release stop beside an ungated call",
  { posts: 1, combinations: S2_ON_PROGRESSIVE },
  async (tab) => {
    tab.send("story:gated_beside_ungated");
    await tab.approve("pay");
    await tab.expectEnd({
      calls: [
        ["lookup", "output-available"],
        ["pay", "approval-responded"],
      ],
      effects: { lookup: 1 },
      chat: "waiting",
      stored: false,
      resumes: false,
    });
  },
);

story(
  "the S2 rules with progressive release complete a single gated call without text",
  { posts: 2, combinations: S2_ON_PROGRESSIVE },
  async (tab) => {
    tab.send("story:approval");
    await tab.approve("pay");
    await tab.expectEnd({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
  },
);
