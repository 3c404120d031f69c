import { isRecord } from "../approvals/request.ts";
import type { CallNotes } from "../chat/call-notes.ts";

/** What is drawn of a tool part; the parts of declared and of dynamic tools both fit. */
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

/** The call that a confirmation part stands for, else the part's own. */
function original(part: ToolPart): { name: string; input: unknown } {
  const name = part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice(5);
  if (name !== CONFIRMATION) return { name, input: part.input };
  const { originalFunctionCall: call } = (part.input ?? {}) as {
    originalFunctionCall?: { name?: unknown; args?: unknown };
  };
  return { name: typeof call?.name === "string" ? call.name : name, input: call?.args };
}

export function toolName(part: ToolPart): string {
  return original(part).name;
}

export function toolInput(part: ToolPart): unknown {
  return original(part).input;
}

/**
 * The arguments that a person approved in place of those asked about (A7), as the message's
 * metadata has them.
 */
export function editsOf(part: ToolPart, metadata: unknown): unknown {
  if (part.approval === undefined || !isRecord(metadata)) return undefined;
  const { approvals } = metadata;
  const trace = isRecord(approvals) ? approvals[part.approval.id] : undefined;
  return isRecord(trace) ? trace.edits : undefined;
}

/** Where a call stands, in words for a person. */
export interface ToolState {
  readonly words: string;
  readonly isOver: boolean;
  readonly isProblem: boolean;
}

const OPEN = { isOver: false, isProblem: false };
const OVER = { isOver: true, isProblem: false };
const PROBLEM = { isOver: true, isProblem: true };

const HELD: ToolState = { words: "done, waiting for your other approvals", ...OVER };
const HELD_FAILURE: ToolState = { words: "failed, waiting for your other approvals", ...PROBLEM };
const RUNNING: ToolState = { words: "running", ...OPEN };

/** What became of a question that nobody has answered, by the server's reason for its end. */
const CLOSED: ReadonlyMap<string | undefined, string> = new Map([
  ["Superseded before it was answered.", "withdrawn"],
  ["This approval expired.", "expired"],
]);

/** What the server still holds back, as far as it has told or as it must be (D2, D6). */
function held(part: ToolPart, notes: CallNotes, isWaiting: boolean): ToolState {
  const progress = notes.get(part.toolCallId);
  if (!isWaiting) return RUNNING;
  if (progress === "failed") return HELD_FAILURE;
  // After a reload nobody tells, but a question is only asked once all calls before it are over.
  const isHeld = progress === "done" || part.providerExecuted === true || part.approval;
  return isHeld ? HELD : RUNNING;
}

function answered(part: ToolPart, notes: CallNotes, isWaiting: boolean): ToolState {
  const { approval } = part;
  if (approval?.approved === false) return { words: "denied", ...PROBLEM };
  const state = held(part, notes, isWaiting);
  if (approval?.isAutomatic === true) return state;
  return state === RUNNING ? { words: "approved, running", ...OPEN } : state;
}

/**
 * Where a call stands. `isWaiting` says whether its message waits for a person; only then are
 * results held.
 */
export function toolState(part: ToolPart, notes: CallNotes, isWaiting: boolean): ToolState {
  switch (part.state) {
    case "input-streaming":
      return { words: "being prepared", ...OPEN };
    case "input-available":
      return held(part, notes, isWaiting);
    case "approval-requested":
      return { words: "waits for you", ...OPEN };
    case "approval-responded":
      return answered(part, notes, isWaiting);
    case "output-available":
      return part.preliminary === true ? RUNNING : { words: "done", ...OVER };
    case "output-denied":
      return { words: CLOSED.get(part.approval?.reason) ?? "denied", ...PROBLEM };
    default:
      return { words: "failed", ...PROBLEM };
  }
}
