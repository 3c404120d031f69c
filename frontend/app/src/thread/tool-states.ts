import { isRecord } from "../approvals/approval-requests.ts";
import type { ToolProgress } from "../chat/tool-progress.ts";

/** The rendered properties of a tool part; parts of static and dynamic tools are assignable. */
export interface ToolPart {
  readonly type: string;
  readonly toolCallId: string;
  readonly toolName?: string;
  readonly title?: string;
  readonly state: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly preliminary?: boolean;
  readonly providerExecuted?: boolean;
  readonly approval?: {
    readonly id: string;
    readonly approved?: boolean;
    readonly reason?: string;
    readonly isAutomatic?: boolean;
  };
}

export function isToolPart(part: { readonly type: string }): part is ToolPart {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

const CONFIRMATION = "adk_request_confirmation";

/** The call that a confirmation part requests approval for, else the part's own call. */
function calledTool(part: ToolPart): { name: string; input: unknown } {
  const name = part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice(5);
  if (name !== CONFIRMATION) return { name, input: part.input };
  const { originalFunctionCall: call } = (part.input ?? {}) as {
    originalFunctionCall?: { name?: unknown; args?: unknown };
  };
  return { name: typeof call?.name === "string" ? call.name : name, input: call?.args };
}

export function toolName(part: ToolPart): string {
  return calledTool(part).name;
}

export function toolInput(part: ToolPart): unknown {
  return calledTool(part).input;
}

/** The arguments that were approved in place of the requested ones (A7), from the metadata. */
export function editsOf(part: ToolPart, metadata: unknown): unknown {
  if (part.approval === undefined || !isRecord(metadata)) return undefined;
  const { approvals } = metadata;
  const approval = isRecord(approvals) ? approvals[part.approval.id] : undefined;
  return isRecord(approval) ? approval.edits : undefined;
}

/** The state of a call, with its label. */
export interface ToolState {
  readonly label: string;
  readonly isFinished: boolean;
  readonly isProblem: boolean;
}

const OPEN = { isFinished: false, isProblem: false };
const FINISHED = { isFinished: true, isProblem: false };
const PROBLEM = { isFinished: true, isProblem: true };

const HELD: ToolState = { label: "done, waiting for your other approvals", ...FINISHED };
const HELD_FAILURE: ToolState = { label: "failed, waiting for your other approvals", ...PROBLEM };
const RUNNING: ToolState = { label: "running", ...OPEN };

/** The labels of approvals that were closed without a decision, by the reason of the server. */
const CLOSED_LABELS: ReadonlyMap<string | undefined, string> = new Map([
  ["Superseded before it was answered.", "withdrawn"],
  ["This approval expired.", "expired"],
]);

/** The state of a call without an outcome, which the server may hold back (D2, D6). */
function withoutOutcome(part: ToolPart, progress: ToolProgress, hasPending: boolean): ToolState {
  const callProgress = progress.get(part.toolCallId);
  if (!hasPending) return RUNNING;
  if (callProgress === "failed") return HELD_FAILURE;
  // After a reload the progress is unknown, but a request follows the end of all earlier calls.
  const isHeld = callProgress === "done" || part.providerExecuted === true || part.approval;
  return isHeld ? HELD : RUNNING;
}

function decided(part: ToolPart, progress: ToolProgress, hasPending: boolean): ToolState {
  const { approval } = part;
  if (approval?.approved === false) return { label: "denied", ...PROBLEM };
  const state = withoutOutcome(part, progress, hasPending);
  if (approval?.isAutomatic === true) return state;
  return state === RUNNING ? { label: "approved, running", ...OPEN } : state;
}

/** The state of a call. Results are held back only if its message has pending approvals. */
export function toolState(part: ToolPart, progress: ToolProgress, hasPending: boolean): ToolState {
  switch (part.state) {
    case "input-streaming":
      return { label: "being prepared", ...OPEN };
    case "input-available":
      return withoutOutcome(part, progress, hasPending);
    case "approval-requested":
      return { label: "waits for you", ...OPEN };
    case "approval-responded":
      return decided(part, progress, hasPending);
    case "output-available":
      return part.preliminary === true ? RUNNING : { label: "done", ...FINISHED };
    case "output-denied":
      return { label: CLOSED_LABELS.get(part.approval?.reason) ?? "denied", ...PROBLEM };
    default:
      return { label: "failed", ...PROBLEM };
  }
}
