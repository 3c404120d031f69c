import { isRecord } from "../is-record.ts";

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
    readonly descriptor?: unknown;
  };
}

export function isToolPart(part: { readonly type: string }): part is ToolPart {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

const CONFIRMATION = "adk_request_confirmation";

/** ADK's request for a consent at another site. */
export const CREDENTIAL_REQUEST = "adk_request_credential";
/** ADK's question to the person. */
export const INPUT_REQUEST = "adk_request_input";

/** Whether a part is a question of ADK to the person, which a form answers. */
export function isAdkRequest(part: ToolPart): boolean {
  const name = toolName(part);
  return name === CREDENTIAL_REQUEST || name === INPUT_REQUEST;
}

interface CalledTool {
  readonly name: string;
  readonly input: unknown;
  readonly payload: unknown;
}

/** The call that a confirmation part requests approval for, else the part's own call. */
function calledTool(part: ToolPart): CalledTool {
  const name = part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice(5);
  if (name !== CONFIRMATION) {
    const descriptor = part.approval?.descriptor;
    const payload = isRecord(descriptor) ? descriptor.payload : undefined;
    return { name, input: part.input, payload };
  }
  const { originalFunctionCall: call, toolConfirmation } = (part.input ?? {}) as {
    originalFunctionCall?: { name?: unknown; args?: unknown };
    toolConfirmation?: { payload?: unknown };
  };
  return {
    name: typeof call?.name === "string" ? call.name : name,
    input: call?.args,
    payload: toolConfirmation?.payload,
  };
}

export function toolName(part: ToolPart): string {
  return calledTool(part).name;
}

/** The title of the tool, else its name. */
export function toolTitle(part: ToolPart): string {
  return part.title ?? toolName(part);
}

export function toolInput(part: ToolPart): unknown {
  return calledTool(part).input;
}

/** The answer that the tool asked its approver for; undefined without one. */
export function toolPayload(part: ToolPart): unknown {
  return calledTool(part).payload ?? undefined;
}

/** What the server recorded of an approval, from the metadata of the message. */
export interface ApprovalTrace {
  readonly state?: string;
  /** In milliseconds since the epoch. */
  readonly decidedAt?: number;
  readonly decidedBy?: string;
  /** The arguments that were approved in place of the requested ones (A7). */
  readonly edits?: unknown;
  /** The answer that was approved in place of the requested one (A7). */
  readonly editedPayload?: unknown;
  /** The grant that approved the call (A8). */
  readonly grantId?: string;
  /** What a person has found out about an outcome that was unknown (A5). */
  readonly resolution?: { readonly outcome: string; readonly reason: string };
}

function isResolution(value: unknown): value is NonNullable<ApprovalTrace["resolution"]> {
  return isRecord(value) && typeof value.outcome === "string" && typeof value.reason === "string";
}

/** The trace of a part's approval; undefined without one. */
export function approvalTrace(part: ToolPart, metadata: unknown): ApprovalTrace | undefined {
  if (part.approval === undefined || !isRecord(metadata)) return undefined;
  const { approvals } = metadata;
  const trace = isRecord(approvals) ? approvals[part.approval.id] : undefined;
  if (!isRecord(trace)) return undefined;
  const { state, decidedAt, decidedBy, edits, editedPayload, grantId, resolution } = trace;
  return {
    ...(typeof state === "string" && { state }),
    ...(typeof decidedAt === "number" && { decidedAt: decidedAt * 1000 }),
    ...(typeof decidedBy === "string" && { decidedBy }),
    ...(edits !== undefined && { edits }),
    ...(editedPayload !== undefined && { editedPayload }),
    ...(typeof grantId === "string" && { grantId }),
    ...(isResolution(resolution) && { resolution }),
  };
}
