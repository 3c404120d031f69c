import type { Release } from "../../../frontend/client/src/testing/index.ts";
import type { ClientTab } from "../harness/client-tab.ts";
import { type Combination, inSequence } from "../harness/matrix.ts";
import type { RuleName } from "../harness/send-rules.ts";
import { STYLES, type Style } from "../harness/servers.ts";

/** A recorded conversation, with its client and the number of posts. */
export interface Golden {
  /** The id of the chat; its colons become folders of the golden file. */
  readonly name: string;
  readonly combination: Combination;
  readonly posts: number;
  run(tab: ClientTab): Promise<void>;
}

interface Conversation {
  readonly posts: (rule: RuleName, combination: Combination) => number;
  run(tab: ClientTab): Promise<void>;
}

const PLACE = { latitude: 48.1, longitude: 11.6 };

const CONVERSATIONS: Readonly<Record<string, Conversation>> = {
  plain: {
    posts: () => 1,
    run: async (tab) => tab.send("story:plain"),
  },
  tool: {
    posts: () => 1,
    run: async (tab) => tab.send("story:one_tool"),
  },
  approved: {
    posts: inSequence(1),
    async run(tab) {
      tab.send("story:approval");
      await tab.approve("pay");
    },
  },
  denied: {
    posts: inSequence(1),
    async run(tab) {
      tab.send("story:approval");
      await tab.deny("pay", "too expensive");
    },
  },
  parallel: {
    posts: () => 2,
    async run(tab) {
      tab.send("story:two_in_one_step");
      await tab.approve("search");
      await tab.deny("update");
    },
  },
  sequential: {
    posts: inSequence(2),
    async run(tab) {
      tab.send("story:two_in_sequence");
      await tab.approve("search", "update");
      const { rule } = tab.combination;
      if (rule === "s2-sse") await tab.waitForPosts(inSequence(2)(rule, tab.combination));
    },
  },
  beside: {
    posts: inSequence(1),
    async run(tab) {
      tab.send("story:gated_beside_ungated");
      await tab.approve("pay");
    },
  },
  around: {
    posts: inSequence(2),
    async run(tab) {
      tab.send("story:text_around");
      await tab.approve("search", "pay");
    },
  },
  "client-tool": {
    posts: (rule) => (rule === "stock+tool-calls" ? 2 : 1),
    async run(tab) {
      tab.send("story:client_tool");
      await tab.addOutput("locate", PLACE);
    },
  },
  "client-tool-gated": {
    posts: () => 3,
    async run(tab) {
      tab.send("story:client_tool_gated");
      await tab.approve("locate_gated");
      await tab.addOutput("locate_gated", PLACE);
    },
  },
  "tool-fails": {
    posts: inSequence(1),
    async run(tab) {
      tab.send("story:tool_fails");
      await tab.approve("fails");
    },
  },
  "model-fails": {
    posts: inSequence(1),
    async run(tab) {
      tab.send("story:model_fails_later");
      await tab.approve("pay");
    },
  },
  "two-messages": {
    posts: () => 3,
    async run(tab) {
      tab.send("story:approval");
      await tab.approve("pay");
      await tab.waitForPosts(2);
      tab.send("story:after");
    },
  },
};

const RULE: RuleName = "stock+tool-calls";
const RELEASES: readonly Release[] = ["deferred", "preview", "progressive"];

function golden(story: string, combination: Combination): Golden {
  const { version, release, style, rule } = combination;
  const conversation = CONVERSATIONS[story];
  if (conversation === undefined) throw new Error(`there is no conversation ${story}`);
  const suffixes = [
    ...(version === "7" ? [] : [`ai-${version}`]),
    ...(rule === RULE ? [] : [rule.replace("+", "-")]),
  ];
  return {
    name: `${release}:${style}:${[story, ...suffixes].join(".")}`,
    combination,
    posts: conversation.posts(rule, combination),
    run: conversation.run,
  };
}

/** Every conversation with each release and style, for AI SDK 7. */
const EACH: readonly Golden[] = Object.keys(CONVERSATIONS).flatMap((story) =>
  RELEASES.flatMap((release) =>
    STYLES.map((style) => golden(story, { version: "7", release, style, rule: RULE })),
  ),
);

/** Conversations whose approvals and texts differ in AI SDK 6. */
const FOR_AI_6: readonly Golden[] = [
  "approved",
  "denied",
  "parallel",
  "around",
  "client-tool",
].flatMap((story) =>
  (["deferred", "progressive"] as const).map((release) =>
    golden(story, { version: "6", release, style: "call", rule: RULE }),
  ),
);

/** Conversations whose number of posts depends on the rule. */
const FOR_RULES: readonly Golden[] = [
  ...withRules("sequential", "call", ["stock", "s2", "s2-sse", "s2-bidi"]),
  ...withRules("sequential", "confirmation", ["stock", "s2", "s2-sse", "s2-bidi"]),
  ...withRules("client-tool", "call", ["stock", "s2", "s2-sse"]),
];

function withRules(story: string, style: Style, rules: readonly RuleName[]): Golden[] {
  return rules.map((rule) => golden(story, { version: "7", release: "deferred", style, rule }));
}

export const GOLDENS: readonly Golden[] = [...EACH, ...FOR_AI_6, ...FOR_RULES];
