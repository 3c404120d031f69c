import type { Conversation } from "../harness/conversation.ts";
import type { Combination, Rule } from "../harness/matrix.ts";
import { inSequence } from "../harness/matrix.ts";
import type { Release } from "../harness/rules.ts";
import { STYLES, type Style } from "../harness/servers.ts";

/** A conversation that is kept: who talks how, and how often the client posts. */
export interface Golden {
  /** The chat's id; a colon where its file has a folder. */
  readonly name: string;
  readonly combination: Combination;
  readonly posts: number;
  tell(talk: Conversation): Promise<void>;
}

interface Told {
  readonly posts: (rule: Rule) => number;
  tell(talk: Conversation): Promise<void>;
}

const PLACE = { latitude: 48.1, longitude: 11.6 };

const CONVERSATIONS: Readonly<Record<string, Told>> = {
  plain: {
    posts: () => 1,
    tell: async (talk) => talk.say("story:plain"),
  },
  tool: {
    posts: () => 1,
    tell: async (talk) => talk.say("story:one_tool"),
  },
  approved: {
    posts: inSequence(1),
    async tell(talk) {
      talk.say("story:approval");
      await talk.approve("pay");
    },
  },
  denied: {
    posts: inSequence(1),
    async tell(talk) {
      talk.say("story:approval");
      await talk.deny("pay", "too expensive");
    },
  },
  parallel: {
    posts: () => 2,
    async tell(talk) {
      talk.say("story:two_in_one_step");
      await talk.approve("search");
      await talk.deny("update");
    },
  },
  sequential: {
    posts: inSequence(2),
    async tell(talk) {
      talk.say("story:two_in_sequence");
      await talk.approve("search", "update");
      if (talk.combination.rule === "s2-sse") await talk.rests(4);
    },
  },
  beside: {
    posts: inSequence(1),
    async tell(talk) {
      talk.say("story:gated_beside_ungated");
      await talk.approve("pay");
    },
  },
  around: {
    posts: inSequence(2),
    async tell(talk) {
      talk.say("story:text_around");
      await talk.approve("search", "pay");
    },
  },
  "client-tool": {
    posts: (rule) => (rule === "stock+tool-calls" ? 2 : 1),
    async tell(talk) {
      talk.say("story:client_tool");
      await talk.output("locate", PLACE);
    },
  },
  "client-tool-gated": {
    posts: () => 3,
    async tell(talk) {
      talk.say("story:client_tool_gated");
      await talk.approve("locate_gated");
      await talk.output("locate_gated", PLACE);
    },
  },
  "tool-fails": {
    posts: inSequence(1),
    async tell(talk) {
      talk.say("story:tool_fails");
      await talk.approve("fails");
    },
  },
  "model-fails": {
    posts: inSequence(1),
    async tell(talk) {
      talk.say("story:model_fails_later");
      await talk.approve("pay");
    },
  },
  "two-messages": {
    posts: () => 3,
    async tell(talk) {
      talk.say("story:approval");
      await talk.approve("pay");
      await talk.rests(2);
      talk.say("story:after");
    },
  },
};

const RULE: Rule = "stock+tool-calls";
const RELEASES: readonly Release[] = ["deferred", "preview", "progressive"];

function golden(story: string, combination: Combination): Golden {
  const { version, release, style, rule } = combination;
  const told = CONVERSATIONS[story];
  if (told === undefined) throw new Error(`there is no conversation ${story}`);
  const marks = [
    ...(version === "7" ? [] : [`ai-${version}`]),
    ...(rule === RULE ? [] : [rule.replace("+", "-")]),
  ];
  return {
    name: `${release}:${style}:${[story, ...marks].join(".")}`,
    combination,
    posts: told.posts(rule),
    tell: told.tell,
  };
}

/** Every conversation in each release and style, as an AI SDK 7 client has it. */
const EACH: readonly Golden[] = Object.keys(CONVERSATIONS).flatMap((story) =>
  RELEASES.flatMap((release) =>
    STYLES.map((style) => golden(story, { version: "7", release, style, rule: RULE })),
  ),
);

/** The same for AI SDK 6, where approvals and texts differ for it. */
const OF_6: readonly Golden[] = ["approved", "denied", "parallel", "around", "client-tool"].flatMap(
  (story) =>
    (["deferred", "progressive"] as const).map((release) =>
      golden(story, { version: "6", release, style: "call", rule: RULE }),
    ),
);

/** How often each rule posts: n + 1, 2n for the literal S2 rule, and where one posts no more. */
const OF_RULES: readonly Golden[] = [
  ...by("sequential", "call", ["stock", "s2", "s2-sse", "s2-bidi"]),
  ...by("sequential", "confirmation", ["stock", "s2", "s2-sse", "s2-bidi"]),
  ...by("client-tool", "call", ["stock", "s2", "s2-sse"]),
];

function by(story: string, style: Style, rules: readonly Rule[]): Golden[] {
  return rules.map((rule) => golden(story, { version: "7", release: "deferred", style, rule }));
}

export const GOLDENS: readonly Golden[] = [...EACH, ...OF_6, ...OF_RULES];
