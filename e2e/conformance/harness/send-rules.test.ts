import { describe, expect, test } from "vitest";
import {
  ANSWER,
  approvalRequest,
  type Chunk,
  call,
  denial,
  failedTurn,
  gatedCall,
  output,
  STEP,
  STEP_END,
  scriptedFetch,
  serverCall,
  step,
  text,
  turn,
  waitingTurn,
} from "../../../frontend/client/src/testing/index.ts";
import { SDKS, type Version } from "./ai-sdk.ts";
import { isTool, type Message, type Part, pendingApprovals } from "./messages.ts";
import { Recorder } from "./recorder.ts";
import { createRule, type RuleName } from "./send-rules.ts";
import { ChangeNotifier, waitFor } from "./waiting.ts";

const LOOP = 12;

interface Row {
  readonly shape: string;
  readonly responses: readonly (readonly Chunk[])[];
  /** The number of posts per rule; a number above LOOP means that the client loops. */
  readonly posts: Readonly<Partial<Record<RuleName, number>>>;
  readonly denies?: boolean;
}

// The safe rule is tested in the client package.
const SAME = (posts: number): Record<Exclude<RuleName, "safe">, number> => ({
  stock: posts,
  "stock+tool-calls": posts,
  s2: posts,
  "s2-sse": posts,
  "s2-bidi": posts,
});
const S2 = (posts: number) => ({ s2: posts, "s2-sse": posts, "s2-bidi": posts });
const STOCK = (posts: number) => ({ stock: posts, "stock+tool-calls": posts });

/** Gated calls in sequence, deferred. */
function inSequence(count: number): Row {
  const ids = Array.from({ length: count }, (_, index) => `c${index + 1}`);
  const requests = ids.map((id) => waitingTurn(step(gatedCall(id))));
  const answer = turn(
    STEP,
    text("Done."),
    ids.map((id) => output(id)),
    STEP_END,
  );
  return {
    shape: `${count} gated calls in sequence, deferred`,
    responses: [...requests, answer],
    posts: SAME(count + 1),
  };
}

/** Two gated calls in sequence; the literal S2-SSE rule posts again after the second request. */
const SEQUENCE = [
  waitingTurn(step(gatedCall("c1", "pay"))),
  waitingTurn(step(gatedCall("c2", "update"))),
];

const ROWS: readonly Row[] = [
  ...[2, 3, 4, 5, 6, 7, 8, 9, 10].map(inSequence),
  {
    shape: "two gated calls in sequence, the decided one announced again before the second",
    responses: [
      waitingTurn(step(gatedCall("c1", "pay"))),
      waitingTurn(serverCall("c1", "pay"), step(gatedCall("c2", "update"))),
      turn(serverCall("c2", "update"), STEP, text("Done."), output("c1"), output("c2"), [STEP_END]),
      failedTurn(),
    ],
    posts: SAME(3),
  },
  // Without it the literal rule sends a second time after the second request. What may answer this
  // post, so that the rule stops and still sends the second decision?
  {
    shape: "two gated calls in sequence, the early post answered with an error",
    responses: [...SEQUENCE, failedTurn(), turn(output("c1"), output("c2"), ANSWER)],
    posts: { "s2-sse": 4 },
  },
  {
    shape: "two gated calls in sequence, the early post answered with nothing",
    responses: [...SEQUENCE, waitingTurn()],
    posts: { "s2-sse": LOOP + 2 },
  },
  {
    shape: "two gated calls in sequence, the early post answered with a step",
    responses: [...SEQUENCE, waitingTurn(STEP, STEP_END)],
    posts: { "s2-sse": LOOP + 2 },
  },
  {
    shape: "two gated calls in sequence, the early post answered with the first call again",
    responses: [...SEQUENCE, waitingTurn(call("c1", "pay"))],
    posts: { "s2-sse": LOOP + 2 },
  },
  {
    shape: "two gated calls in sequence, the early post answered with a preliminary output",
    responses: [...SEQUENCE, waitingTurn({ ...output("c1"), preliminary: true })],
    posts: { "s2-sse": 3 },
  },
  {
    shape: "two gated calls in sequence, the early post answered with text",
    responses: [...SEQUENCE, waitingTurn(STEP, text("Wait."), STEP_END)],
    posts: { "s2-sse": 3 },
  },
  {
    shape: "two requests in one step, the early post answered with the decided call again",
    responses: [
      waitingTurn(STEP, call("c1", "pay"), call("c2", "update"), approvalRequest("c1"), [
        approvalRequest("c2"),
        STEP_END,
      ]),
      waitingTurn(serverCall("c1", "pay")),
      turn(output("c1"), output("c2"), ANSWER),
    ],
    posts: { "s2-sse": 3 },
  },
  {
    shape: "text and a result in the second response",
    responses: [
      waitingTurn(step(gatedCall("c1", "pay"))),
      waitingTurn(output("c1"), STEP, text("Paid."), STEP_END, step(gatedCall("c2", "update"))),
      turn(output("c2"), ANSWER),
    ],
    posts: { ...STOCK(3), ...S2(2) },
  },
  {
    shape: "text before the first approval request",
    responses: [
      waitingTurn(STEP, text("First."), call("c1", "pay"), approvalRequest("c1"), STEP_END),
      turn(output("c1"), ANSWER),
    ],
    posts: { ...STOCK(2), ...S2(1) },
  },
  {
    shape: "two approval requests in one step",
    responses: [
      waitingTurn(STEP, call("c1", "pay"), call("c2", "update"), approvalRequest("c1"), [
        approvalRequest("c2"),
        STEP_END,
      ]),
      turn(output("c1"), output("c2"), ANSWER),
    ],
    posts: SAME(2),
  },
  {
    shape: "an empty continuation",
    responses: [waitingTurn(step(gatedCall("c1", "pay"))), turn()],
    posts: SAME(LOOP + 1),
  },
  {
    shape: "text without a step and without a result",
    responses: [waitingTurn(step(gatedCall("c1", "pay"))), turn(text("Done."))],
    posts: { ...STOCK(LOOP + 1), ...S2(2) },
  },
  {
    shape: "text in a separate step and no result",
    responses: [waitingTurn(step(gatedCall("c1", "pay"))), turn(ANSWER)],
    posts: SAME(2),
  },
  {
    shape: "a denial and text",
    responses: [waitingTurn(step(gatedCall("c1", "pay"))), turn(denial("c1"), ANSWER)],
    posts: SAME(2),
    denies: true,
  },
  {
    shape: "an error chunk",
    responses: [waitingTurn(step(gatedCall("c1", "pay"))), failedTurn()],
    posts: SAME(2),
  },
  {
    shape: "an ungated call in the step of the approval request, its output released",
    responses: [
      waitingTurn(STEP, serverCall("c0", "lookup"), call("c1", "pay"), output("c0"), [
        approvalRequest("c1"),
        STEP_END,
      ]),
      turn(output("c1"), ANSWER),
    ],
    posts: { ...STOCK(2), ...S2(1) },
  },
  {
    shape: "an ungated call in the step of the approval request, its output held",
    responses: [
      waitingTurn(STEP, serverCall("c0", "lookup"), call("c1", "pay"), approvalRequest("c1"), [
        STEP_END,
      ]),
      turn(output("c0"), output("c1"), ANSWER),
    ],
    posts: { ...STOCK(1), ...S2(2) },
  },
  {
    shape: "an ungated call in a separate step, its output held",
    responses: [
      waitingTurn(STEP, serverCall("c0", "lookup"), STEP_END, step(gatedCall("c1", "pay"))),
      turn(output("c0"), output("c1"), ANSWER),
    ],
    posts: SAME(2),
  },
  {
    shape: "an unmarked finished call at the end of the last step",
    responses: [
      waitingTurn(step(gatedCall("c1", "pay"))),
      turn(STEP, text("Done."), call("c2", "lookup"), output("c2"), STEP_END, output("c1")),
    ],
    posts: { stock: 2, "stock+tool-calls": LOOP + 1, ...S2(2) },
  },
];

async function posts(row: Row, version: Version, rule: RuleName): Promise<number> {
  const sdk = SDKS[version];
  const changes = new ChangeNotifier();
  const recorder = new Recorder({
    validators: [sdk],
    changes,
    maxPosts: LOOP,
    fetch: scriptedFetch(row.responses),
  });
  const chat = sdk.createChat({
    id: "chat",
    api: "http://127.0.0.1/api/chat",
    headers: {},
    body: () => ({}),
    fetch: recorder.fetch,
    sendAutomaticallyWhen: createRule(rule, sdk),
  });
  chat["~registerStatusCallback"](changes.notify);
  void chat.sendMessage({ text: "Go." });
  const isIdle = (): boolean => !recorder.isBusy && /ready|error/.test(chat.status);
  const whenIdle = (): Promise<void> =>
    waitFor(isIdle, "an idle client", { changes, describe: () => chat.status });
  await whenIdle();
  for (let left = LOOP; left > 0; left -= 1) {
    const pending: Message["parts"][number] | undefined = pendingApprovals(chat.messages)[0];
    if (pending === undefined) break;
    const id = pending.approval?.id ?? "";
    await chat.addToolApprovalResponse({ id, approved: row.denies !== true });
    await whenIdle();
  }
  expect(await recorder.faults()).toEqual([]);
  return recorder.posts.length;
}

describe.each(Object.keys(SDKS) as Version[])("a client of ai %s", (version) => {
  describe.each([...ROWS])("given $shape", (row) => {
    const rules = Object.entries(row.posts) as [RuleName, number][];
    test.each(rules.map(([rule, expected]) => ({ rule, expected })))(
      "posts $expected times under $rule",
      async ({ rule, expected }) => {
        expect(await posts(row, version, rule)).toBe(expected);
      },
    );
  });
});

test.each(Object.keys(SDKS) as Version[])(
  "ai %s updates a part that is announced again, and does not report its call twice",
  async (version) => {
    const calls: string[] = [];
    const responses = [
      waitingTurn(step(gatedCall("c1", "pay"))),
      turn(serverCall("c1", "pay"), ANSWER),
    ];
    const chat = SDKS[version].createChat({
      id: "chat",
      api: "http://127.0.0.1/api/chat",
      headers: {},
      body: () => ({}),
      fetch: scriptedFetch(responses),
      onToolCall: ({ toolCall }) => {
        calls.push(toolCall.toolCallId);
      },
    });
    await chat.sendMessage({ text: "Go." });
    await chat.addToolApprovalResponse({ id: "approval-c1", approved: true });
    await chat.sendMessage();
    const parts = chat.messages.flatMap((message) => message.parts).filter(isTool);
    expect(parts).toMatchObject([
      { state: "input-available", providerExecuted: true, approval: { approved: true } },
    ]);
    expect(calls).toEqual(["c1"]);
  },
);

test("the literal S2-SSE rule sends while another approval of the step is pending", () => {
  const parts = [
    { type: "tool-pay", state: "approval-responded" },
    { type: "tool-update", state: "approval-requested" },
  ];
  const messages: Message[] = [{ id: "m1", role: "assistant", parts }];
  const sends = (rule: RuleName) => createRule(rule, SDKS["7"])({ messages });
  expect(sends("s2-sse")).toBe(true);
  expect(sends("s2-bidi")).toBe(false);
  expect(sends("s2")).toBe(false);
});

describe("an S2 rule", () => {
  const decided = { type: "tool-pay", state: "approval-responded" };
  const question: Message = { id: "m2", role: "user", parts: [{ type: "text", text: "Hi." }] };
  const answer = (...parts: Part[]): Message => ({ id: "m1", role: "assistant", parts });
  const rows: [string, Message[], boolean][] = [
    ["a decided approval", [answer(decided)], true],
    ["a decided approval of a later step", [answer({ type: "step-start" }, decided)], true],
    ["no message", [], false],
    ["no part", [answer()], false],
    ["a user message after a decision", [answer(decided), question], false],
    ["an open approval", [answer({ type: "tool-pay", state: "approval-requested" })], false],
    ["a call without an approval", [answer({ type: "tool-pay", state: "input-available" })], false],
    ["reasoning alone", [answer({ type: "reasoning", text: "Hm." })], false],
  ];
  const rules = ["s2", "s2-sse", "s2-bidi"] as const;
  test.each(
    rows.flatMap(([given, messages, sends]) =>
      rules.map((rule) => ({ given, messages, sends, rule })),
    ),
  )("$rule given $given sends: $sends", ({ messages, sends, rule }) => {
    expect(createRule(rule, SDKS["7"])({ messages })).toBe(sends);
  });
});
