import type { DecisionsInProgress } from "../approvals/decision.ts";
import type { ToolProgress } from "../chat/tool-progress.ts";
import type { ToolPart } from "./tool-part.ts";

/** The state of a call, with its label. */
export interface ToolState {
  readonly label: string;
  /** `open` until the call has an outcome. */
  readonly kind: "open" | "done" | "problem" | "unknown";
}

/** What the state of a call depends on beside its part. */
export interface StateContext {
  readonly progress: ToolProgress;
  /** Whether the message has pending approvals, until which results are held back. */
  readonly hasPending: boolean;
  /** What the ledger says of the approval, if it is known. */
  readonly recorded?: string | undefined;
}

const HELD: ToolState = { label: "done, waiting for your other approvals", kind: "done" };
const HELD_FAILURE: ToolState = {
  label: "failed, waiting for your other approvals",
  kind: "problem",
};
const RUNNING: ToolState = { label: "running", kind: "open" };
const UNKNOWN: ToolState = { label: "outcome unknown", kind: "unknown" };
/** The states of calls whose outcome the server holds back, by the state in the ledger. */
const HELD_STATES: Readonly<Record<string, ToolState>> = {
  executed: HELD,
  failed: HELD_FAILURE,
  unknown: UNKNOWN,
};
const EXPIRED: ToolState = { label: "expired", kind: "problem" };

/** The labels of approvals that were closed without a decision, by the reason of the server. */
const CLOSED_LABELS: ReadonlyMap<string | undefined, string> = new Map([
  ["Superseded before it was answered.", "withdrawn"],
  ["This approval expired.", "expired"],
]);

/** The state of a call without an outcome, which the server may hold back (D2, D6). */
function withoutOutcome(part: ToolPart, context: StateContext): ToolState {
  const callProgress = context.progress.get(part.toolCallId);
  if (!context.hasPending) return RUNNING;
  if (callProgress === "failed") return HELD_FAILURE;
  // After a reload the progress is unknown, but a request follows the end of all earlier calls.
  if (callProgress === "done" || part.providerExecuted === true) return HELD;
  return { label: "waits for your other decisions", kind: "open" };
}

/** The state of a call that no person approved. */
function denied({ approval }: ToolPart): ToolState {
  return { label: CLOSED_LABELS.get(approval?.reason) ?? "denied", kind: "problem" };
}

/** Whether a part is a decided confirmation, which the server announces again as its own. */
function isAnnouncedAgain({ providerExecuted, approval }: ToolPart): boolean {
  return providerExecuted === true && approval?.approved !== undefined;
}

function decided(part: ToolPart, context: StateContext): ToolState {
  const { approval } = part;
  if (approval?.approved === false) return denied(part);
  const held = context.hasPending ? HELD_STATES[context.recorded ?? ""] : undefined;
  if (held !== undefined) return held;
  const state = withoutOutcome(part, context);
  if (approval?.isAutomatic === true || state.kind !== "open") return state;
  return { label: `approved, ${state.label}`, kind: "open" };
}

/** The states of calls whose outcome was unknown first, by the state in the ledger. */
const LATER_STATES: Readonly<Record<string, ToolState>> = {
  executed: { label: "done, as was found out later", kind: "done" },
  failed: { label: "failed, as was found out later", kind: "problem" },
};

function failed({ errorText = "" }: ToolPart, recorded = ""): ToolState {
  if (recorded === "unknown") return UNKNOWN;
  // What the model has read stays in the message.
  if (errorText.startsWith("The outcome is unknown:")) return LATER_STATES[recorded] ?? UNKNOWN;
  if (recorded === "expired" || errorText.includes("This approval expired.")) return EXPIRED;
  if (errorText.startsWith("Not run:")) return { label: "not run", kind: "problem" };
  return { label: "failed", kind: "problem" };
}

/** The state of a call. */
export function toolState(part: ToolPart, context: StateContext): ToolState {
  switch (part.state) {
    case "input-streaming":
      return { label: "being prepared", kind: "open" };
    case "input-available":
      return isAnnouncedAgain(part) ? decided(part, context) : withoutOutcome(part, context);
    case "approval-requested":
      return { label: "waits for you", kind: "open" };
    case "approval-responded":
      return decided(part, context);
    case "output-available":
      return part.preliminary === true ? RUNNING : { label: "done", kind: "done" };
    case "output-denied":
      return denied(part);
    default:
      return failed(part, context.recorded);
  }
}

/** The part with the decision that the server has accepted and the message does not show yet. */
export function withAcceptedDecision(part: ToolPart, decisions: DecisionsInProgress): ToolPart {
  const progress = part.approval && decisions.get(part.approval.id);
  if (part.state !== "approval-requested" || progress?.state !== "accepted") return part;
  const { approved } = progress.decision;
  return {
    ...part,
    state: "approval-responded",
    approval: { ...part.approval, id: part.approval?.id ?? "", approved },
  };
}
