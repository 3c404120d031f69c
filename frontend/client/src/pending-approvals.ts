import { isRecord } from "./is-record.ts";
import {
  type ChatMessage,
  CONFIRMATION,
  isToolPart,
  type MessagePart,
  toolName,
} from "./message-parts.ts";

/** An approval that waits for a person's decision, with the call that it is requested for. */
export interface PendingApproval {
  /** The `id` for `addToolApprovalResponse`. */
  readonly approvalId: string;
  readonly messageId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** The arguments of the call, exactly as the tool will receive them (S2-R44). */
  readonly input: unknown;
  /** Why the agent requests the approval; AI SDK 7 and the style `confirmation`. */
  readonly reason?: string;
  /** The server's description of the tool; AI SDK 7. `approvalDescriptor` reads it. */
  readonly descriptor?: unknown;
  /** What the tool asks the person to check or to fill in. */
  readonly payload?: unknown;
  /** The JSON schema of the answer, if the payload is a form; null is a field without a value. */
  readonly payloadSchema?: Readonly<Record<string, unknown>>;
  /** The names of the agents from the root to the one that calls, joined by `/`. */
  readonly agent?: string;
  /** What differs from the tool that an earlier grant was given for. */
  readonly changed?: DefinitionChange;
}

/** The old and the new value of each part of a tool's definition that has changed. */
export interface DefinitionChange {
  readonly description?: readonly [old: string, new: string];
  /** The JSON schemas of the arguments; null where the tool declared none. */
  readonly parameters?: readonly [old: unknown, new: unknown];
}

/** The server's description of a call that waits for a decision. */
export interface ApprovalDescriptor {
  readonly toolName?: string;
  /** The names of the agents from the root to the one that calls, joined by `/`. */
  readonly agent?: string;
  readonly editable: boolean;
  readonly rememberable: boolean;
  /** The seconds for which an approval may be remembered, at most and by default. */
  readonly grantTtl: number;
  /** The deadline, as an ISO timestamp. */
  readonly expiresAt?: string;
  /** The JSON schema of the arguments. */
  readonly schema?: Readonly<Record<string, unknown>>;
  readonly changed?: DefinitionChange;
}

const DEFAULT_GRANT_TTL = 86_400;

function pair(value: unknown): [unknown, unknown] | undefined {
  return Array.isArray(value) && value.length === 2 ? [value[0], value[1]] : undefined;
}

function definitionChange(value: unknown): DefinitionChange | undefined {
  if (!isRecord(value)) return undefined;
  const [before, after] = pair(value.description) ?? [];
  const parameters = pair(value.parameters);
  return {
    ...(typeof before === "string" &&
      typeof after === "string" && { description: [before, after] }),
    ...(parameters && { parameters }),
  };
}

/** Parse the `descriptor` of an approval; what is not valid permits neither edits nor grants. */
export function approvalDescriptor(value: unknown): ApprovalDescriptor {
  const fields = isRecord(value) ? value : {};
  const { toolName, grantTtl, expiresAt, schema } = fields;
  const agent = agentOf(fields);
  const changed = definitionChange(fields.changed);
  return {
    editable: fields.editable === true,
    rememberable: fields.rememberable === true,
    grantTtl: typeof grantTtl === "number" && grantTtl > 0 ? grantTtl : DEFAULT_GRANT_TTL,
    ...(typeof toolName === "string" && { toolName }),
    ...(agent !== undefined && { agent }),
    ...(typeof expiresAt === "string" && { expiresAt }),
    ...(isRecord(schema) && { schema }),
    ...(changed && { changed }),
  };
}

interface RequestedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly hint?: string;
  readonly payload?: unknown;
  readonly payloadSchema?: Readonly<Record<string, unknown>>;
}

/** The call in the input of a confirmation part (style `confirmation`), if there is one. */
function confirmedCall(part: MessagePart): RequestedCall | undefined {
  if (toolName(part) !== CONFIRMATION || !isRecord(part.input)) return undefined;
  const { originalFunctionCall: call, toolConfirmation: confirmation } = part.input;
  if (!isRecord(call) || typeof call.id !== "string" || typeof call.name !== "string") {
    return undefined;
  }
  const { hint, payload, payloadSchema } = isRecord(confirmation) ? confirmation : {};
  return {
    toolCallId: call.id,
    toolName: call.name,
    input: call.args ?? {},
    ...(typeof hint === "string" && hint !== "" && { hint }),
    ...(payload !== undefined && payload !== null && { payload }),
    ...(isRecord(payloadSchema) && { payloadSchema }),
  };
}

/** Whether a part waits for a person's decision; an automatic approval does not. */
export function isPendingApproval(part: MessagePart): boolean {
  return (
    isToolPart(part) && part.state === "approval-requested" && part.approval?.isAutomatic !== true
  );
}

function pendingApproval(part: MessagePart, messageId: string): PendingApproval[] {
  if (!isPendingApproval(part) || part.approval === undefined) return [];
  const { id: approvalId, requestReason, descriptor } = part.approval;
  const fields = isRecord(descriptor) ? descriptor : {};
  const { arguments: effective, payload, payloadSchema } = fields;
  const { hint, ...call } = confirmedCall(part) ?? {
    toolCallId: part.toolCallId ?? "",
    toolName: toolName(part),
    input: part.input,
    hint: undefined,
  };
  const reason = requestReason ?? hint;
  // AI SDK 6 has no descriptor.
  const agent = agentOf(fields) ?? agentOf(part.toolMetadata);
  const changed = definitionChange(fields.changed);
  return [
    {
      approvalId,
      messageId,
      ...call,
      // The part has the model's arguments if another step followed before the request.
      ...(isRecord(effective) && { input: effective }),
      ...(reason !== undefined && { reason }),
      ...(descriptor !== undefined && { descriptor }),
      ...(payload !== undefined && { payload }),
      ...(isRecord(payloadSchema) && { payloadSchema }),
      ...(agent !== undefined && { agent }),
      ...(changed && { changed }),
    },
  ];
}

function agentOf(described: unknown): string | undefined {
  const agent = isRecord(described) ? described.agent : undefined;
  return typeof agent === "string" ? agent : undefined;
}

/**
 * The approvals that wait for a person's decision, in order, in both approval styles.
 *
 * Approvals before the last user message are superseded (A5), even where their part still has the
 * state `approval-requested`. Automatic approvals (A8) are not pending.
 */
export function pendingApprovals(messages: readonly ChatMessage[]): PendingApproval[] {
  const lastUserMessage = messages.findLastIndex((message) => message.role === "user");
  return messages
    .slice(lastUserMessage + 1)
    .filter((message) => message.role === "assistant")
    .flatMap((message) => message.parts.flatMap((part) => pendingApproval(part, message.id)));
}
