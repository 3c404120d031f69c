import type { ChatMessage, MessagePart } from "../src/messages.ts";

/** What a part does to the decision: hold it back, ask for it, or neither. */
export type Role = "waits" | "sends" | "nothing";

export interface Kind {
  readonly kind: string;
  readonly part: MessagePart;
  /** In the last step, for a rule without names and for one that names `locate`. */
  readonly last: readonly [safe: Role, named: Role];
  /** In an earlier step, likewise. */
  readonly earlier: readonly [safe: Role, named: Role];
}

const ASKED = { id: "a" };
export const YES = { id: "a", approved: true };
export const NO = { id: "a", approved: false };
const BY_ITSELF = { id: "a", approved: true, isAutomatic: true };

function kind(name: string, part: MessagePart, last: Role | Kind["last"], earlier = last): Kind {
  const both = (role: Role | Kind["last"]) => (typeof role === "string" ? [role, role] : role);
  return { kind: name, part, last: both(last), earlier: both(earlier) } as Kind;
}

export const pay = (state: string, more: object = {}): MessagePart => ({
  type: "tool-pay",
  state,
  ...more,
});
export const locate = (state: string, more: object = {}): MessagePart => ({
  type: "tool-locate",
  state,
  ...more,
});
export const lookup = (state: string, more: object = {}): MessagePart => ({
  type: "tool-lookup",
  state,
  ...more,
});
export const MARKED = { providerExecuted: true };
const WAITS_IF_NAMED = ["nothing", "waits"] as const;

/** Each state that a part can be in, as the rule has to read it. */
export const KINDS: readonly Kind[] = [
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

/** The safe rule without names, and with the name of the page's tool; and its column in the table. */
export const RULES = [
  { name: "safe", names: {}, at: 0 },
  { name: "named", names: { clientTools: ["locate"] }, at: 1 },
] as const;

/** Parts with ids of their own, as the calls of one message have. */
export function message(...parts: readonly MessagePart[]): { messages: ChatMessage[] } {
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

export function expected(...roles: readonly Role[]): boolean {
  return roles.includes("sends") && !roles.includes("waits");
}
