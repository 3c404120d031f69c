import { describe, expect, test } from "vitest";
import { kits, type Version } from "./kit.ts";
import { predicate, type Rule } from "./matrix.ts";
import { type Message, pendingApprovals } from "./messages.ts";
import { Recorder } from "./recorder.ts";
import {
  call,
  denial,
  failed,
  freeCall,
  gate,
  output,
  request,
  STEP,
  STEP_END,
  scriptedFetch,
  text,
  turn,
} from "./scripted.ts";
import type { Chunk } from "./sse.ts";
import { Bell, waitFor } from "./waiting.ts";

const LOOP = 12;
const ANSWER = [STEP, ...text("Done."), STEP_END];

interface Row {
  readonly shape: string;
  readonly responses: readonly (readonly Chunk[])[];
  /** Posts per rule; a number above LOOP means that the client loops. */
  readonly posts: Readonly<Partial<Record<Rule, number>>>;
  readonly denies?: boolean;
}

// The safe rule has tables of its own where it is made.
const SAME = (posts: number): Record<Exclude<Rule, "safe">, number> => ({
  stock: posts,
  "stock+tool-calls": posts,
  s2: posts,
  "s2-sse": posts,
  "s2-bidi": posts,
});
const S2 = (posts: number) => ({ s2: posts, "s2-sse": posts, "s2-bidi": posts });
const STOCK = (posts: number) => ({ stock: posts, "stock+tool-calls": posts });

const ROWS: readonly Row[] = [
  {
    shape: "two gates in sequence, all held to the end",
    responses: [
      turn("tool-calls", gate("c1", "pay")),
      turn("tool-calls", gate("c2", "update")),
      turn("stop", STEP, text("Done."), output("c1"), output("c2"), STEP_END),
    ],
    posts: SAME(3),
  },
  {
    shape: "text and a result in the response between",
    responses: [
      turn("tool-calls", gate("c1", "pay")),
      turn("tool-calls", output("c1"), STEP, text("Paid."), STEP_END, gate("c2", "update")),
      turn("stop", output("c2"), ANSWER),
    ],
    posts: { ...STOCK(3), ...S2(2) },
  },
  {
    shape: "text before the first request",
    responses: [
      turn("tool-calls", STEP, text("First."), call("c1", "pay"), request("c1"), STEP_END),
      turn("stop", output("c1"), ANSWER),
    ],
    posts: { ...STOCK(2), ...S2(1) },
  },
  {
    shape: "two requests in one step",
    responses: [
      turn("tool-calls", STEP, call("c1", "pay"), call("c2", "update"), request("c1"), [
        request("c2"),
        STEP_END,
      ]),
      turn("stop", output("c1"), output("c2"), ANSWER),
    ],
    posts: SAME(2),
  },
  {
    shape: "an empty continuation",
    responses: [turn("tool-calls", gate("c1", "pay")), turn("stop")],
    posts: SAME(LOOP + 1),
  },
  {
    shape: "text without a step and without a result",
    responses: [turn("tool-calls", gate("c1", "pay")), turn("stop", text("Done."))],
    posts: { ...STOCK(LOOP + 1), ...S2(2) },
  },
  {
    shape: "text in a step of its own and no result",
    responses: [turn("tool-calls", gate("c1", "pay")), turn("stop", ANSWER)],
    posts: SAME(2),
  },
  {
    shape: "a denial and text",
    responses: [turn("tool-calls", gate("c1", "pay")), turn("stop", denial("c1"), ANSWER)],
    posts: SAME(2),
    denies: true,
  },
  {
    shape: "an error chunk",
    responses: [turn("tool-calls", gate("c1", "pay")), failed()],
    posts: SAME(2),
  },
  {
    shape: "a free call beside the request, its output shown in the step of the request",
    responses: [
      turn("tool-calls", STEP, freeCall("c0", "lookup"), call("c1", "pay"), output("c0"), [
        request("c1"),
        STEP_END,
      ]),
      turn("stop", output("c1"), ANSWER),
    ],
    posts: { ...STOCK(2), ...S2(1) },
  },
  {
    shape: "a free call beside the request, its output held in the step of the request",
    responses: [
      turn("tool-calls", STEP, freeCall("c0", "lookup"), call("c1", "pay"), request("c1"), [
        STEP_END,
      ]),
      turn("stop", output("c0"), output("c1"), ANSWER),
    ],
    posts: { ...STOCK(1), ...S2(2) },
  },
  {
    shape: "a free call in a step of its own, its output held",
    responses: [
      turn("tool-calls", STEP, freeCall("c0", "lookup"), STEP_END, gate("c1", "pay")),
      turn("stop", output("c0"), output("c1"), ANSWER),
    ],
    posts: SAME(2),
  },
  {
    shape: "a finished call that is not marked as the server's, at the end of the last step",
    responses: [
      turn("tool-calls", gate("c1", "pay")),
      turn("stop", STEP, text("Done."), call("c2", "lookup"), output("c2"), STEP_END, output("c1")),
    ],
    posts: { stock: 2, "stock+tool-calls": LOOP + 1, ...S2(2) },
  },
];

async function posts(row: Row, version: Version, rule: Rule): Promise<number> {
  const kit = kits[version];
  const bell = new Bell();
  const recorder = new Recorder({
    judges: [kit],
    bell,
    mostPosts: LOOP,
    inner: scriptedFetch(row.responses),
  });
  const chat = kit.chat({
    id: "chat",
    api: "http://127.0.0.1/api/chat",
    headers: {},
    body: () => ({}),
    fetch: recorder.fetch,
    sendAutomaticallyWhen: predicate(rule, kit),
  });
  chat["~registerStatusCallback"](bell.ring);
  void chat.sendMessage({ text: "Go." });
  const rests = (): boolean => !recorder.isBusy && /ready|error/.test(chat.status);
  const rest = (): Promise<void> => waitFor(rests, "rest", { bell, describe: () => chat.status });
  await rest();
  for (let left = 0; left < 3; left += 1) {
    const asking: Message["parts"][number] | undefined = pendingApprovals(chat.messages)[0];
    if (asking === undefined) break;
    const id = asking.approval?.id ?? "";
    await chat.addToolApprovalResponse({ id, approved: row.denies !== true });
    await rest();
  }
  expect(await recorder.faults()).toEqual([]);
  return recorder.posts.length;
}

describe.each(Object.keys(kits) as Version[])("a client of ai %s", (version) => {
  describe.each([...ROWS])("given $shape", (row) => {
    const rules = Object.entries(row.posts) as [Rule, number][];
    test.each(rules.map(([rule, wanted]) => ({ rule, wanted })))(
      "posts $wanted times under $rule",
      async ({ rule, wanted }) => {
        expect(await posts(row, version, rule)).toBe(wanted);
      },
    );
  });
});

test("the literal S2-SSE rule sends while a second request of the step still waits", () => {
  const parts = [
    { type: "tool-pay", state: "approval-responded" },
    { type: "tool-update", state: "approval-requested" },
  ];
  const messages: Message[] = [{ id: "m1", role: "assistant", parts }];
  const sends = (rule: Rule) => predicate(rule, kits["7"])({ messages });
  expect(sends("s2-sse")).toBe(true);
  expect(sends("s2-bidi")).toBe(false);
  expect(sends("s2")).toBe(false);
});

test("a message of the user sets nothing off", () => {
  const messages: Message[] = [
    { id: "m1", role: "assistant", parts: [{ type: "tool-pay", state: "approval-responded" }] },
    { id: "m2", role: "user", parts: [{ type: "text", text: "Hi." }] },
  ];
  for (const rule of ["s2", "s2-sse", "s2-bidi"] as const) {
    expect(predicate(rule, kits["7"])({ messages })).toBe(false);
  }
});
