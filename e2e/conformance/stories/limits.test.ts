import { S2_ON_PROGRESSIVE } from "../harness/matrix.ts";
import { story } from "../harness/story.ts";

// The S2 rules take any text and any finished call for the end of an exchange, and release
// `progressive` shows both before the last request: the last answer is never sent.

story(
  "the S2 rules on progressive get stuck at the second of two gates",
  { posts: 2, combinations: S2_ON_PROGRESSIVE },
  async (talk) => {
    talk.say("story:two_in_sequence");
    await talk.approve("search", "update");
    await talk.ends({
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
  "the S2 rules on progressive get stuck at the second of five gates",
  { posts: 2, combinations: S2_ON_PROGRESSIVE },
  async (talk) => {
    talk.say("story:five_in_sequence");
    await talk.approve("pay", "pay");
    await talk.ends({
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
  "the S2 rules on progressive get stuck when the model speaks first",
  { posts: 1, combinations: S2_ON_PROGRESSIVE },
  async (talk) => {
    talk.say("story:text_around");
    await talk.approve("search");
    await talk.ends({
      calls: [["search", "approval-responded"]],
      chat: "waiting",
      stored: false,
      resumes: false,
    });
  },
);

story(
  "the S2 rules on progressive get stuck beside a call that asks nobody",
  { posts: 1, combinations: S2_ON_PROGRESSIVE },
  async (talk) => {
    talk.say("story:gated_beside_ungated");
    await talk.approve("pay");
    await talk.ends({
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
  "the S2 rules manage a single silent gate on progressive",
  { posts: 2, combinations: S2_ON_PROGRESSIVE },
  async (talk) => {
    talk.say("story:approval");
    await talk.approve("pay");
    await talk.ends({ calls: [["pay", "output-available"]], effects: { pay: 1 } });
  },
);
