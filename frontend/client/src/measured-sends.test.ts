import { describe, expect, test } from "vitest";
import type { Response } from "../testing/chunks.ts";
import {
  ANSWER,
  call,
  denial,
  failed,
  gate,
  output,
  outputError,
  request,
  serverCall,
  step,
  text,
  turn,
} from "../testing/chunks.ts";
import {
  MOST_POSTS,
  type Rule,
  ScriptedChat,
  stockRules,
  type Version,
  WAYS,
} from "../testing/scripted-chat.ts";
import { s2Bidi, s2BidiLiteral, s2Sse, s2SseLiteral } from "./s2-rules.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const LOOP = MOST_POSTS + 1;

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
  readonly responses: readonly Response[];
  readonly posts: Readonly<Record<RuleName, number>>;
  /** The ids of the assistant's messages at the end, `m1` alone unless given. */
  readonly answers?: readonly string[];
  readonly denies?: boolean;
}

type Posts = Partial<Record<"stock" | "either" | "s2" | "safe" | "sse", number>>;

/** Posts under each rule; those left out are like the stock rule's, the safe rules' included. */
function posts(stock: number, others: Posts = {}): Row["posts"] {
  const { either = stock, s2 = stock, safe = stock, sse = s2 } = others;
  return { stock, either, sse, bidi: s2, s2, safe, named: safe };
}

const GATE = turn(step(gate("c1")));
const HELD_TO_THE_END = turn(step(text("Done."), output("c1"), output("c2")));
const ENDS = turn(output("c1"), ANSWER);
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
    shape: "two gates in sequence, all held to the end",
    responses: [GATE, turn(step(gate("c2"))), HELD_TO_THE_END],
    posts: posts(3, { either: 3 }),
  },
  {
    shape: "two gates in sequence without steps",
    responses: [
      turn(gate("c1")),
      turn(gate("c2")),
      turn(text("Done."), output("c1"), output("c2")),
    ],
    // Stock and tool calls take the finished calls of the one step for the page's.
    posts: posts(3, { either: LOOP }),
  },
  {
    shape: "two gates in sequence, a new id in each response",
    responses: [
      turn({ type: "start", messageId: "m1" }, step(gate("c1"))),
      turn({ type: "start", messageId: "m2" }, step(gate("c2"))),
      turn({ type: "start", messageId: "m3" }, ANSWER),
    ],
    posts: posts(3),
    answers: ["m1", "m2", "m3"],
  },
  {
    shape: "text and a result in the response between",
    responses: [
      GATE,
      turn(output("c1"), step(text("Paid.")), step(gate("c2"))),
      turn(output("c2"), ANSWER),
    ],
    posts: posts(3, { s2: 2 }),
  },
  {
    shape: "text before the first request",
    responses: [turn(step(text("First."), gate("c1"))), ENDS],
    posts: posts(2, { s2: 1 }),
  },
  {
    shape: "an empty continuation",
    responses: [GATE, turn()],
    posts: posts(LOOP, { safe: 2 }),
  },
  {
    shape: "text without a step and without a result",
    responses: [GATE, turn(text("Done."))],
    posts: posts(LOOP, { s2: 2, safe: 2 }),
  },
  {
    shape: "text in a step of its own and no result",
    responses: [GATE, turn(ANSWER)],
    posts: posts(2),
  },
  {
    shape: "a denial and text",
    responses: [GATE, turn(denial("c1"), ANSWER)],
    posts: posts(2),
    denies: true,
  },
  { shape: "an error chunk", responses: [GATE, failed()], posts: posts(2) },
  {
    shape: "a step that starts behind the call it holds",
    responses: [turn(call("c1"), step(request("c1"))), ENDS],
    // The safe rule looks for answers in the whole message.
    posts: posts(1, { s2: 2, safe: 2 }),
  },
  {
    shape: "an output for a call that nobody made",
    responses: [GATE, turn(output("nobody"))],
    posts: posts(2),
  },
  {
    shape: "a request for a call that nobody made",
    responses: [turn(step(request("nobody")))],
    posts: posts(1),
  },
  {
    shape: "a free call in the step of the gate, its output shown",
    responses: [turn(step(serverCall("c0"), call("c1"), output("c0"), request("c1"))), ENDS],
    posts: posts(2, { s2: 1 }),
  },
  {
    shape: "a free call in the step of the gate, its output held",
    responses: [turn(step(serverCall("c0"), gate("c1"))), turn(output("c0"), output("c1"), ANSWER)],
    posts: posts(1, { s2: 2, safe: 2 }),
  },
  {
    shape: "a free call in a step of its own, its output held",
    responses: [
      turn(step(serverCall("c0")), step(gate("c1"))),
      turn(output("c0"), output("c1"), ANSWER),
    ],
    posts: posts(2),
  },
  {
    shape: "a free call in a step of its own, its output shown",
    responses: [turn(step(serverCall("c0"), output("c0")), step(gate("c1"))), ENDS],
    posts: posts(2, { s2: 1 }),
  },
  {
    shape: "a result and no text in the response between",
    responses: [GATE, turn(output("c1"), step(gate("c2"))), turn(output("c2"), ANSWER)],
    posts: posts(3, { s2: 2 }),
  },
  {
    shape: "an empty block of text before the gates",
    responses: [turn(step(text("")), step(gate("c1"))), turn(step(gate("c2"))), HELD_TO_THE_END],
    posts: posts(3, { s2: 1 }),
  },
  ...Object.entries(NEUTRAL).map(([shape, chunks]) => ({
    shape: `${shape} before the gates`,
    responses: [turn(step(chunks, gate("c1"))), turn(step(chunks, gate("c2"))), HELD_TO_THE_END],
    posts: posts(3),
  })),
  {
    shape: "outputs in the last response alone",
    responses: [GATE, turn(output("c1"), outputError("c1"), ANSWER)],
    posts: posts(2),
  },
  {
    shape: "a result and text in the step of the gate",
    responses: [GATE, turn(output("c1"), text("Done."))],
    posts: posts(2, { either: LOOP }),
  },
  {
    shape: "a marked call that finishes in the last step",
    responses: [GATE, turn(output("c1"), step(serverCall("c2"), output("c2"), text("Done.")))],
    posts: posts(2),
  },
  {
    shape: "a new step behind the last output, and nothing in it",
    responses: [GATE, turn(output("c1"), step())],
    posts: posts(2),
  },
];

describe.each([...WAYS])("a client of ai $version over $over", ({ version, over }) => {
  describe.each([...ROWS])("given $shape", (row) => {
    const cases = (Object.entries(row.posts) as [RuleName, number][]).map(([rule, wanted]) => ({
      rule,
      wanted,
    }));

    test.each(cases)("posts $wanted times under $rule", async ({ rule, wanted }) => {
      const scripted = new ScriptedChat({ version, over, rule: makeRule(rule, version), ...row });
      await scripted.say("Go.");
      await scripted.answerAll(row.denies !== true);

      expect(scripted.posts).toBe(wanted);
      if (wanted === row.responses.length) {
        const answers = scripted.chat.messages.filter((message) => message.role === "assistant");
        expect(answers.map((message) => message.id)).toEqual(row.answers ?? ["m1"]);
      }
    });
  });

  /** Calls finished by the server without its mark: how often a foreign server is asked again. */
  test.each([
    { rule: "stock", wanted: 2 },
    { rule: "either", wanted: LOOP },
    { rule: "safe", wanted: 3 },
    { rule: "named", wanted: 2 },
  ] as const)("posts $wanted times under $rule given a free call without a mark", async (row) => {
    const responses = [GATE, turn(output("c1"), step(call("c2", "lookup"), output("c2")))];
    const rule = makeRule(row.rule, version);
    const scripted = new ScriptedChat({ version, over, rule, responses });
    await scripted.say("Go.");
    await scripted.answerAll();

    expect(scripted.posts).toBe(row.wanted);
  });

  test.each([
    { rule: "stock", after: [1, 2] },
    { rule: "sse", after: [2, 2] },
    { rule: "bidi", after: [1, 2] },
    { rule: "s2", after: [1, 2] },
    { rule: "safe", after: [1, 2] },
    { rule: "named", after: [1, 2] },
  ] as const)("has posted $after times after each of two answers under $rule", async (row) => {
    const responses = [
      turn(step(call("c1"), call("c2"), request("c1"), request("c2"))),
      turn(output("c1"), output("c2"), ANSWER),
    ];
    const rule = makeRule(row.rule, version);
    const scripted = new ScriptedChat({ version, over, rule, responses });
    await scripted.say("Go.");
    const after: number[] = [];
    for (const id of ["approval-c1", "approval-c2"]) {
      await scripted.answer(id);
      after.push(scripted.posts);
    }

    expect(after).toEqual(row.after);
  });

  test.each(["safe", "named"] as const)("posts a double click once under %s", async (name) => {
    const responses = [GATE, turn(step())];
    const scripted = new ScriptedChat({ version, over, rule: makeRule(name, version), responses });
    await scripted.say("Go.");
    await scripted.answer("approval-c1", true);
    await scripted.answer("approval-c1", false);
    await scripted.answer("nobody");

    expect(scripted.posts).toBe(2);
  });
});
