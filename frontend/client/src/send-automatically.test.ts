import { describe, expect, test } from "vitest";
import type { ChatMessage, MessagePart } from "./messages.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

/** What a part does to the decision: hold it back, ask for it, or neither. */
type Role = "waits" | "sends" | "nothing";

interface Kind {
  readonly kind: string;
  readonly part: MessagePart;
  /** In the last step, for a rule without names and for one that names `locate`. */
  readonly last: readonly [safe: Role, named: Role];
  /** In an earlier step, likewise. */
  readonly earlier: readonly [safe: Role, named: Role];
}

const ASKED = { id: "a" };
const YES = { id: "a", approved: true };
const NO = { id: "a", approved: false };
const BY_ITSELF = { id: "a", approved: true, isAutomatic: true };

function kind(name: string, part: MessagePart, last: Role | Kind["last"], earlier = last): Kind {
  const both = (role: Role | Kind["last"]) => (typeof role === "string" ? [role, role] : role);
  return { kind: name, part, last: both(last), earlier: both(earlier) } as Kind;
}

const pay = (state: string, more: object = {}): MessagePart => ({
  type: "tool-pay",
  state,
  ...more,
});
const locate = (state: string, more: object = {}): MessagePart => ({
  type: "tool-locate",
  state,
  ...more,
});
const lookup = (state: string, more: object = {}): MessagePart => ({
  type: "tool-lookup",
  state,
  ...more,
});
const MARKED = { providerExecuted: true };
const WAITS_IF_NAMED = ["nothing", "waits"] as const;

const KINDS: readonly Kind[] = [
  kind("a text", { type: "text", state: "done" }, "nothing"),
  kind("reasoning", { type: "reasoning", state: "done" }, "nothing"),
  kind("data", { type: "data-progress" }, "nothing"),
  kind("a file", { type: "file" }, "nothing"),
  kind("a source", { type: "source-url" }, "nothing"),
  kind("the server's call, streaming", lookup("input-streaming", MARKED), "nothing"),
  kind("the server's call, held", lookup("input-available", MARKED), "nothing"),
  kind("the server's call, at work", lookup("output-available", MARKED), "nothing"),
  kind("the server's call, failed", lookup("output-error", MARKED), "nothing"),
  kind(
    "a gate that nobody foresaw",
    pay("approval-requested", { ...MARKED, approval: ASKED }),
    "waits",
  ),
  kind("its answer", pay("approval-responded", { ...MARKED, approval: YES }), "sends"),
  kind("a gate", pay("approval-requested", { approval: ASKED }), "waits"),
  kind("a gate, answered yes", pay("approval-responded", { approval: YES }), "sends"),
  kind("a gate, answered no", pay("approval-responded", { approval: NO }), "sends"),
  kind("a gate, done", pay("output-available", { approval: YES }), "nothing"),
  kind("a gate, failed", pay("output-error", { approval: YES }), "nothing"),
  kind("a gate, denied", pay("output-denied", { approval: NO }), "nothing"),
  kind(
    "the server asks itself",
    pay("approval-requested", { approval: { ...ASKED, isAutomatic: true } }),
    "nothing",
  ),
  kind(
    "the server has answered itself",
    pay("approval-responded", { approval: BY_ITSELF }),
    "nothing",
  ),
  kind(
    "a gate of a tool known at run time",
    { ...pay("approval-requested", { approval: ASKED }), type: "dynamic-tool", toolName: "pay" },
    "waits",
  ),
  kind(
    "its answer",
    { ...pay("approval-responded", { approval: YES }), type: "dynamic-tool", toolName: "pay" },
    "sends",
  ),
  kind("the page's call, streaming", locate("input-streaming"), "waits", WAITS_IF_NAMED),
  kind("the page's call, open", locate("input-available"), "waits", WAITS_IF_NAMED),
  kind(
    "the page's call, at work",
    locate("output-available", { preliminary: true }),
    "waits",
    WAITS_IF_NAMED,
  ),
  kind("the page's call, done", locate("output-available"), "sends", "nothing"),
  kind("the page's call, failed", locate("output-error"), "sends", "nothing"),
  kind("the page's gate", locate("approval-requested", { approval: ASKED }), "waits"),
  kind("the page's gate, answered", locate("approval-responded", { approval: YES }), "sends"),
  kind(
    "the page's gate, open",
    locate("input-available", { approval: YES }),
    "waits",
    WAITS_IF_NAMED,
  ),
  kind(
    "the page's gate, done",
    locate("output-available", { approval: YES }),
    ["nothing", "sends"],
    "nothing",
  ),
  kind(
    "a gate that the server answered itself for the page, done",
    locate("output-available", { approval: BY_ITSELF }),
    "sends",
    "nothing",
  ),
  kind("the page's gate, denied", locate("output-denied", { approval: NO }), "nothing"),
  kind("a call without a mark, open", lookup("input-available"), ["waits", "nothing"], "nothing"),
  kind("a call without a mark, done", lookup("output-available"), ["sends", "nothing"], "nothing"),
  kind(
    "a question of ADK",
    { type: "tool-adk_request_input", state: "input-available" },
    "waits",
    "nothing",
  ),
  kind(
    "a question of ADK, answered",
    { type: "tool-adk_request_input", state: "output-available" },
    "sends",
    "nothing",
  ),
  kind(
    "a card",
    { type: "tool-adk_request_confirmation", state: "approval-requested", approval: ASKED },
    "waits",
  ),
  kind(
    "a card, answered",
    { type: "tool-adk_request_confirmation", state: "approval-responded", approval: NO },
    "sends",
  ),
  kind(
    "a card, closed",
    { type: "tool-adk_request_confirmation", state: "output-available", approval: YES },
    "nothing",
  ),
];

const STEP: MessagePart = { type: "step-start" };
const RULES = [
  { name: "safe", names: {}, at: 0 },
  { name: "named", names: { clientTools: ["locate"] }, at: 1 },
] as const;

/** Parts with ids of their own, as the calls of one message have. */
function message(...parts: readonly MessagePart[]): { messages: ChatMessage[] } {
  const numbered = parts.map((part, index) => ({
    ...part,
    ...(part.state && part.type !== "text" && { toolCallId: `c${index}` }),
    ...(part.approval && { approval: { ...part.approval, id: `a${index}` } }),
  }));
  return {
    messages: [
      { id: "u1", role: "user", parts: [{ type: "text" }] },
      { id: "m1", role: "assistant", parts: numbered },
    ],
  };
}

function expected(...roles: readonly Role[]): boolean {
  return roles.includes("sends") && !roles.includes("waits");
}

describe.each(RULES)("the rule $name", ({ names, at }) => {
  const rule = () => sendAutomaticallyWhen(names);

  describe.each(KINDS)("with $kind", ({ part, last, earlier }) => {
    test("alone in the last step", () => {
      expect(rule()(message(STEP, part))).toBe(expected(last[at]));
    });

    test("alone and without steps", () => {
      expect(rule()(message(part))).toBe(expected(last[at]));
    });

    test("in a step before an empty one", () => {
      expect(rule()(message(STEP, part, STEP))).toBe(expected(earlier[at]));
    });

    test("in one step with each other kind", () => {
      for (const other of KINDS) {
        const wanted = expected(last[at], other.last[at]);
        expect(rule()(message(STEP, part, other.part)), other.kind).toBe(wanted);
        expect(rule()(message(STEP, other.part, part)), other.kind).toBe(wanted);
      }
    });

    test("in a step before each other kind", () => {
      for (const other of KINDS) {
        const wanted = expected(earlier[at], other.last[at]);
        expect(rule()(message(STEP, part, STEP, other.part)), other.kind).toBe(wanted);
      }
    });

    test("never twice as it is, and again once it is forgotten", () => {
      const made = rule();
      const first = made(message(STEP, part));
      expect(made(message(STEP, part))).toBe(false);
      made.forget("another");
      expect(made(message(STEP, part))).toBe(false);
      made.forget("m1");
      expect(made(message(STEP, part))).toBe(first);
      made.forget();
      expect(made(message(STEP, part))).toBe(first);
    });

    test("never behind a message of the user", () => {
      const { messages } = message(STEP, part);
      const user: ChatMessage = { id: "u2", role: "user", parts: [] };
      expect(rule()({ messages: [...messages, user] })).toBe(false);
    });
  });

  test("sends nothing without messages", () => {
    expect(rule()({ messages: [] })).toBe(false);
  });

  test("sends an answer, yet no output, before a text that was cut off", () => {
    const cut: MessagePart = { type: "text", state: "streaming" };
    const answered = pay("approval-responded", { approval: YES });
    expect(rule()(message(STEP, locate("output-available"), cut))).toBe(false);
    expect(
      rule()(message(STEP, locate("output-available"), cut, lookup("output-available", MARKED))),
    ).toBe(false);
    expect(rule()(message(STEP, cut, locate("output-available")))).toBe(true);
    expect(rule()(message(STEP, answered, cut))).toBe(true);
  });

  test("sends what is new beside what was sent, and nothing when some of it is settled", () => {
    const made = rule();
    const one = pay("approval-responded", { approval: YES });
    expect(made(message(STEP, one))).toBe(true);
    expect(made(message(STEP, one, one))).toBe(true);
    expect(made(message(STEP, pay("output-available", { approval: YES }), one))).toBe(false);
  });

  test("takes yes after no for another answer", () => {
    const made = rule();
    expect(made(message(STEP, pay("approval-responded", { approval: NO })))).toBe(true);
    expect(made(message(STEP, pay("approval-responded", { approval: YES })))).toBe(true);
  });

  test("shares no memory with another rule, and keeps messages apart", () => {
    const state = message(STEP, pay("approval-responded", { approval: YES }));
    const made = rule();
    expect([made(state), rule()(state), made(state)]).toEqual([true, true, false]);
    const other = state.messages.map((each) => ({ ...each, id: `${each.id}-other` }));
    expect(made({ messages: other })).toBe(true);
  });

  test("sends an output of an earlier step that it saw open there", () => {
    const made = rule();
    expect(made(message(STEP, locate("input-available")))).toBe(false);
    expect(made(message(STEP, locate("output-available"), STEP))).toBe(true);
  });
});
