import { describe, expect, test } from "vitest";
import {
  CLIENT_VARIANTS,
  type Rule,
  stockRules,
  type Version,
} from "../testing/ai-sdk-versions.ts";
import { MAX_POSTS, ScriptedChat } from "../testing/scripted-chat.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";
import { s2Bidi, s2BidiLiteral, s2Sse, s2SseLiteral } from "./sequential-send-rules.ts";
import type { ResponseChunks } from "./testing/chunks.ts";
import {
  ANSWER,
  approvalRequest,
  call,
  denial,
  failedTurn,
  gatedCall,
  output,
  outputError,
  serverCall,
  step,
  text,
  turn,
} from "./testing/chunks.ts";

const LOOP = MAX_POSTS + 1;

type RuleName = "stock" | "either" | "sse" | "bidi" | "s2" | "safe" | "named";

function makeRule(name: RuleName, version: Version): Rule {
  const { stock, toolCalls } = stockRules(version);
  const rules: Record<RuleName, Rule> = {
    stock,
    either: async (state) => (await stock(state)) || (await toolCalls(state)),
    sse: s2SseLiteral,
    bidi: s2BidiLiteral,
    s2: (state) => {
      expect(s2Bidi(state)).toBe(s2Sse(state));
      return s2Sse(state);
    },
    safe: sendAutomaticallyWhen(),
    named: sendAutomaticallyWhen({ clientTools: ["locate"] }),
  };
  return rules[name];
}

interface Row {
  readonly shape: string;
  readonly responses: readonly ResponseChunks[];
  readonly posts: Readonly<Record<RuleName, number>>;
  /** The ids of the assistant messages at the end; default: `m1`. */
  readonly messageIds?: readonly string[];
  readonly denies?: boolean;
}

type Posts = Partial<Record<"stock" | "either" | "s2" | "safe" | "sse", number>>;

/** The number of posts under each rule; it defaults to that of the stock rule. */
function posts(stock: number, others: Posts = {}): Row["posts"] {
  const { either = stock, s2 = stock, safe = stock, sse = s2 } = others;
  return { stock, either, sse, bidi: s2, s2, safe, named: safe };
}

const GATED = turn(step(gatedCall("c1")));
const DEFERRED = turn(step(text("Done."), output("c1"), output("c2")));
const FINAL = turn(output("c1"), ANSWER);
const NEUTRAL: Readonly<Record<string, readonly { type: string; [key: string]: unknown }[]>> = {
  "a transient data chunk": [{ type: "data-progress", data: {}, transient: true }],
  "a lasting data chunk": [{ type: "data-progress", data: {} }],
  reasoning: [
    { type: "reasoning-start", id: "r1" },
    { type: "reasoning-delta", id: "r1", delta: "Hm." },
    { type: "reasoning-end", id: "r1" },
  ],
  "a source": [{ type: "source-url", sourceId: "s1", url: "https://example.org/" }],
  "a file": [{ type: "file", url: "data:text/plain,x", mediaType: "text/plain" }],
  metadata: [{ type: "message-metadata", messageMetadata: { usage: {} } }],
};

const ROWS: readonly Row[] = [
  {
    shape: "two gated calls in sequence, deferred",
    responses: [GATED, turn(step(gatedCall("c2"))), DEFERRED],
    posts: posts(3, { either: 3 }),
  },
  {
    shape: "two gated calls in sequence without steps",
    responses: [
      turn(gatedCall("c1")),
      turn(gatedCall("c2")),
      turn(text("Done."), output("c1"), output("c2")),
    ],
    // The stock rules count the finished calls of the single step as client-side.
    posts: posts(3, { either: LOOP }),
  },
  {
    shape: "two gated calls in sequence, a new id in each response",
    responses: [
      turn({ type: "start", messageId: "m1" }, step(gatedCall("c1"))),
      turn({ type: "start", messageId: "m2" }, step(gatedCall("c2"))),
      turn({ type: "start", messageId: "m3" }, ANSWER),
    ],
    posts: posts(3),
    messageIds: ["m1", "m2", "m3"],
  },
  {
    shape: "text and a result in the second response",
    responses: [
      GATED,
      turn(output("c1"), step(text("Paid.")), step(gatedCall("c2"))),
      turn(output("c2"), ANSWER),
    ],
    posts: posts(3, { s2: 2 }),
  },
  {
    shape: "text before the first approval request",
    responses: [turn(step(text("First."), gatedCall("c1"))), FINAL],
    posts: posts(2, { s2: 1 }),
  },
  {
    shape: "an empty continuation",
    responses: [GATED, turn()],
    posts: posts(LOOP, { safe: 2 }),
  },
  {
    shape: "text without a step and without a result",
    responses: [GATED, turn(text("Done."))],
    posts: posts(LOOP, { s2: 2, safe: 2 }),
  },
  {
    shape: "text in a separate step and no result",
    responses: [GATED, turn(ANSWER)],
    posts: posts(2),
  },
  {
    shape: "a denial and text",
    responses: [GATED, turn(denial("c1"), ANSWER)],
    posts: posts(2),
    denies: true,
  },
  { shape: "an error chunk", responses: [GATED, failedTurn()], posts: posts(2) },
  {
    shape: "a step that starts after its call",
    responses: [turn(call("c1"), step(approvalRequest("c1"))), FINAL],
    // The safe rule looks for messageIds in the whole message.
    posts: posts(1, { s2: 2, safe: 2 }),
  },
  {
    shape: "an output for an unknown call",
    responses: [GATED, turn(output("unknown"))],
    posts: posts(2),
  },
  {
    shape: "an approval request for an unknown call",
    responses: [turn(step(approvalRequest("unknown")))],
    posts: posts(1),
  },
  {
    shape: "an ungated call in the step of the gated call, its output released",
    responses: [
      turn(step(serverCall("c0"), call("c1"), output("c0"), approvalRequest("c1"))),
      FINAL,
    ],
    posts: posts(2, { s2: 1 }),
  },
  {
    shape: "an ungated call in the step of the gated call, its output held",
    responses: [
      turn(step(serverCall("c0"), gatedCall("c1"))),
      turn(output("c0"), output("c1"), ANSWER),
    ],
    posts: posts(1, { s2: 2, safe: 2 }),
  },
  {
    shape: "an ungated call in a separate step, its output held",
    responses: [
      turn(step(serverCall("c0")), step(gatedCall("c1"))),
      turn(output("c0"), output("c1"), ANSWER),
    ],
    posts: posts(2),
  },
  {
    shape: "an ungated call in a separate step, its output released",
    responses: [turn(step(serverCall("c0"), output("c0")), step(gatedCall("c1"))), FINAL],
    posts: posts(2, { s2: 1 }),
  },
  {
    shape: "a result and no text in the second response",
    responses: [GATED, turn(output("c1"), step(gatedCall("c2"))), turn(output("c2"), ANSWER)],
    posts: posts(3, { s2: 2 }),
  },
  {
    shape: "an empty text before the gated calls",
    responses: [turn(step(text("")), step(gatedCall("c1"))), turn(step(gatedCall("c2"))), DEFERRED],
    posts: posts(3, { s2: 1 }),
  },
  ...Object.entries(NEUTRAL).map(([shape, chunks]) => ({
    shape: `${shape} before the gated calls`,
    responses: [turn(step(chunks, gatedCall("c1"))), turn(step(chunks, gatedCall("c2"))), DEFERRED],
    posts: posts(3),
  })),
  {
    shape: "outputs in the last response only",
    responses: [GATED, turn(output("c1"), outputError("c1"), ANSWER)],
    posts: posts(2),
  },
  {
    shape: "a result and text in the step of the gated call",
    responses: [GATED, turn(output("c1"), text("Done."))],
    posts: posts(2, { either: LOOP }),
  },
  {
    shape: "a marked call that finishes in the last step",
    responses: [GATED, turn(output("c1"), step(serverCall("c2"), output("c2"), text("Done.")))],
    posts: posts(2),
  },
  {
    shape: "an empty step after the last output",
    responses: [GATED, turn(output("c1"), step())],
    posts: posts(2),
  },
];

describe.each([...CLIENT_VARIANTS])("a client of ai $version over $over", ({ version, over }) => {
  describe.each([...ROWS])("given $shape", (row) => {
    const cases = (Object.entries(row.posts) as [RuleName, number][]).map(([rule, expected]) => ({
      rule,
      expected,
    }));

    test.each(cases)("posts $expected times under $rule", async ({ rule, expected }) => {
      const scripted = new ScriptedChat({ version, over, rule: makeRule(rule, version), ...row });
      await scripted.send("Go.");
      await scripted.decideAll(row.denies !== true);

      expect(scripted.posts).toBe(expected);
      if (expected === row.responses.length) {
        const assistantMessages = scripted.chat.messages.filter(
          (message) => message.role === "assistant",
        );
        expect(assistantMessages.map((message) => message.id)).toEqual(row.messageIds ?? ["m1"]);
      }
    });
  });

  /** Server-side calls without `providerExecuted`, as other servers send them. */
  test.each([
    { rule: "stock", expected: 2 },
    { rule: "either", expected: LOOP },
    { rule: "safe", expected: 3 },
    { rule: "named", expected: 2 },
  ] as const)(
    "posts $expected times under $rule given an ungated call without a mark",
    async (row) => {
      const responses = [GATED, turn(output("c1"), step(call("c2", "lookup"), output("c2")))];
      const rule = makeRule(row.rule, version);
      const scripted = new ScriptedChat({ version, over, rule, responses });
      await scripted.send("Go.");
      await scripted.decideAll();

      expect(scripted.posts).toBe(row.expected);
    },
  );

  test.each([
    { rule: "stock", after: [1, 2] },
    { rule: "sse", after: [2, 2] },
    { rule: "bidi", after: [1, 2] },
    { rule: "s2", after: [1, 2] },
    { rule: "safe", after: [1, 2] },
    { rule: "named", after: [1, 2] },
  ] as const)("has posted $after times after each of two decisions under $rule", async (row) => {
    const responses = [
      turn(step(call("c1"), call("c2"), approvalRequest("c1"), approvalRequest("c2"))),
      turn(output("c1"), output("c2"), ANSWER),
    ];
    const rule = makeRule(row.rule, version);
    const scripted = new ScriptedChat({ version, over, rule, responses });
    await scripted.send("Go.");
    const after: number[] = [];
    for (const id of ["approval-c1", "approval-c2"]) {
      await scripted.decide(id);
      after.push(scripted.posts);
    }

    expect(after).toEqual(row.after);
  });

  test.each(["safe", "named"] as const)("posts a repeated decision once under %s", async (name) => {
    const responses = [GATED, turn(step())];
    const scripted = new ScriptedChat({ version, over, rule: makeRule(name, version), responses });
    await scripted.send("Go.");
    await scripted.decide("approval-c1", true);
    await scripted.decide("approval-c1", false);
    await scripted.decide("unknown");

    expect(scripted.posts).toBe(2);
  });
});
