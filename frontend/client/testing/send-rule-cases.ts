import type { ChatMessage, MessagePart } from "../src/message-parts.ts";

/** The effect of a part on the rule: it prevents sending, triggers it, or neither. */
export type Role = "waits" | "sends" | "nothing";

export interface Kind {
  readonly kind: string;
  readonly part: MessagePart;
  /** In the last step: for a rule without names, and for one that names `locate`. */
  readonly last: readonly [safe: Role, named: Role];
  /** In an earlier step, for the same rules. */
  readonly earlier: readonly [safe: Role, named: Role];
}

const REQUESTED = { id: "a" };
export const APPROVED = { id: "a", approved: true };
export const DENIED = { id: "a", approved: false };
const AUTOMATIC = { id: "a", approved: true, isAutomatic: true };

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
export const SERVER_SIDE = { providerExecuted: true };
const WAITS_IF_NAMED = ["nothing", "waits"] as const;

/** Every state of every kind of part, with its effect on the rule. */
export const KINDS: readonly Kind[] = [
  kind("a text", { type: "text", state: "done" }, "nothing"),
  kind("reasoning", { type: "reasoning", state: "done" }, "nothing"),
  kind("data", { type: "data-progress" }, "nothing"),
  kind("a file", { type: "file" }, "nothing"),
  kind("a source", { type: "source-url" }, "nothing"),
  kind("a server-side call, input streaming", lookup("input-streaming", SERVER_SIDE), "nothing"),
  kind("a server-side call, held", lookup("input-available", SERVER_SIDE), "nothing"),
  kind("a server-side call, preliminary", lookup("output-available", SERVER_SIDE), "nothing"),
  kind("a server-side call, failed", lookup("output-error", SERVER_SIDE), "nothing"),
  kind(
    "an unannounced gated call",
    pay("approval-requested", { ...SERVER_SIDE, approval: REQUESTED }),
    "waits",
  ),
  kind(
    "the same, decided",
    pay("approval-responded", { ...SERVER_SIDE, approval: APPROVED }),
    "sends",
  ),
  kind("a gated call", pay("approval-requested", { approval: REQUESTED }), "waits"),
  kind("a gated call, approved", pay("approval-responded", { approval: APPROVED }), "sends"),
  kind("a gated call, denied, not sent", pay("approval-responded", { approval: DENIED }), "sends"),
  kind("a gated call, done", pay("output-available", { approval: APPROVED }), "nothing"),
  kind("a gated call, failed", pay("output-error", { approval: APPROVED }), "nothing"),
  kind("a gated call, denied", pay("output-denied", { approval: DENIED }), "nothing"),
  kind(
    "an automatic approval request",
    pay("approval-requested", { approval: { ...REQUESTED, isAutomatic: true } }),
    "nothing",
  ),
  kind("an automatic approval", pay("approval-responded", { approval: AUTOMATIC }), "nothing"),
  kind(
    "a gated call of a dynamic tool",
    {
      ...pay("approval-requested", { approval: REQUESTED }),
      type: "dynamic-tool",
      toolName: "pay",
    },
    "waits",
  ),
  kind(
    "the same, decided",
    { ...pay("approval-responded", { approval: APPROVED }), type: "dynamic-tool", toolName: "pay" },
    "sends",
  ),
  kind("a client-side call, input streaming", locate("input-streaming"), "waits", WAITS_IF_NAMED),
  kind("a client-side call, open", locate("input-available"), "waits", WAITS_IF_NAMED),
  kind(
    "a client-side call, preliminary",
    locate("output-available", { preliminary: true }),
    "waits",
    WAITS_IF_NAMED,
  ),
  kind("a client-side call, done", locate("output-available"), "sends", "nothing"),
  kind("a client-side call, failed", locate("output-error"), "sends", "nothing"),
  kind("a gated client-side call", locate("approval-requested", { approval: REQUESTED }), "waits"),
  kind(
    "a gated client-side call, approved",
    locate("approval-responded", { approval: APPROVED }),
    "sends",
  ),
  kind(
    "a gated client-side call, open",
    locate("input-available", { approval: APPROVED }),
    "waits",
    WAITS_IF_NAMED,
  ),
  kind(
    "a gated client-side call, done",
    locate("output-available", { approval: APPROVED }),
    ["nothing", "sends"],
    "nothing",
  ),
  kind(
    "an automatically approved client-side call, done",
    locate("output-available", { approval: AUTOMATIC }),
    "sends",
    "nothing",
  ),
  kind(
    "a gated client-side call, denied",
    locate("output-denied", { approval: DENIED }),
    "nothing",
  ),
  kind("an unmarked call, open", lookup("input-available"), ["waits", "nothing"], "nothing"),
  kind("an unmarked call, done", lookup("output-available"), ["sends", "nothing"], "nothing"),
  kind(
    "an input request of ADK",
    { type: "tool-adk_request_input", state: "input-available" },
    "waits",
    "nothing",
  ),
  kind(
    "an input request of ADK, answered",
    { type: "tool-adk_request_input", state: "output-available" },
    "sends",
    "nothing",
  ),
  kind(
    "a confirmation",
    { type: "tool-adk_request_confirmation", state: "approval-requested", approval: REQUESTED },
    "waits",
  ),
  kind(
    "a confirmation, decided",
    { type: "tool-adk_request_confirmation", state: "approval-responded", approval: DENIED },
    "sends",
  ),
  kind(
    "a confirmation, announced again",
    {
      type: "tool-adk_request_confirmation",
      state: "input-available",
      providerExecuted: true,
      approval: APPROVED,
    },
    "nothing",
  ),
  kind(
    "a confirmation, closed",
    { type: "tool-adk_request_confirmation", state: "output-available", approval: APPROVED },
    "nothing",
  ),
];

/** The safe rule without names and with the name of the client-side tool, with its table column. */
export const RULES = [
  { name: "safe", options: {}, column: 0 },
  { name: "named", options: { clientTools: ["locate"] }, column: 1 },
] as const;

/** A message with these parts, each with unique ids. */
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
