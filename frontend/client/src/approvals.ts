import {
  type ChatMessage,
  isPendingApproval,
  isToolPart,
  type MessagePart,
  toolName,
} from "./messages.ts";

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
  const { toolName, agent, grantTtl, expiresAt, schema } = fields;
  const changed = definitionChange(fields.changed);
  return {
    editable: fields.editable === true,
    rememberable: fields.rememberable === true,
    grantTtl: typeof grantTtl === "number" && grantTtl > 0 ? grantTtl : DEFAULT_GRANT_TTL,
    ...(typeof toolName === "string" && { toolName }),
    ...(typeof agent === "string" && { agent }),
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
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The call in the input of a confirmation part (style `confirmation`), if there is one. */
function confirmedCall(part: MessagePart): RequestedCall | undefined {
  if (toolName(part) !== "adk_request_confirmation" || !isRecord(part.input)) return undefined;
  const { originalFunctionCall: call, toolConfirmation: confirmation } = part.input;
  if (!isRecord(call) || typeof call.id !== "string" || typeof call.name !== "string") {
    return undefined;
  }
  const hint = isRecord(confirmation) ? confirmation.hint : undefined;
  return {
    toolCallId: call.id,
    toolName: call.name,
    input: call.args ?? {},
    ...(typeof hint === "string" && hint !== "" && { hint }),
  };
}

function pendingApproval(part: MessagePart, messageId: string): PendingApproval[] {
  if (!isPendingApproval(part) || part.approval === undefined) return [];
  const { id: approvalId, requestReason, descriptor } = part.approval;
  const effective = isRecord(descriptor) ? descriptor.arguments : undefined;
  const { hint, ...call } = confirmedCall(part) ?? {
    toolCallId: part.toolCallId ?? "",
    toolName: toolName(part),
    input: part.input,
    hint: undefined,
  };
  const reason = requestReason ?? hint;
  const { agent = metadataAgent(part), changed } = approvalDescriptor(descriptor);
  return [
    {
      approvalId,
      messageId,
      ...call,
      // The part has the model's arguments if another step followed before the request.
      ...(isRecord(effective) && { input: effective }),
      ...(reason !== undefined && { reason }),
      ...(descriptor !== undefined && { descriptor }),
      ...(agent !== undefined && { agent }),
      ...(changed && { changed }),
    },
  ];
}

/** The agent that the tool's metadata names; AI SDK 6 has no descriptor. */
function metadataAgent({ toolMetadata }: MessagePart): string | undefined {
  const agent = isRecord(toolMetadata) ? toolMetadata.agent : undefined;
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

/** An approval that was closed without a decision, from a `data-approval` part (D7). */
export interface ClosedApproval {
  readonly approvalId: string;
  /** If undefined, the approval is searched for in every message. */
  readonly messageId?: string;
  /** Such as `superseded` or `expired`. */
  readonly state: string;
  /** A sentence for the user. */
  readonly reason: string;
}

/** An `approval` frame of a live connection, for a decision made in any client. */
export interface DecidedApproval {
  readonly approvalId: string;
  /** `approved` or `denied`, or the state in which the approval ended without a decision. */
  readonly state: string;
  readonly reason?: string;
}

/** The properties of a message that an update needs; the messages of both majors are assignable. */
interface UpdatableMessage {
  readonly id: string;
  readonly parts: readonly object[];
}

/** The closed approval that a `data-approval` part announces; undefined for any other part. */
export function closedApproval(part: {
  readonly type: string;
  readonly data?: unknown;
}): ClosedApproval | undefined {
  if (part.type !== "data-approval" || !isRecord(part.data)) return undefined;
  const { approvalId, messageId, state, reason } = part.data;
  if (typeof approvalId !== "string" || typeof messageId !== "string") return undefined;
  return { approvalId, messageId, state: String(state), reason: String(reason ?? "") };
}

function isOpenApproval(part: MessagePart, approvalId: string): boolean {
  const isOpen = part.state === "approval-requested" || part.state === "approval-responded";
  return isToolPart(part) && isOpen && part.approval?.id === approvalId;
}

/** Update the open parts of one approval; returns the same array if there is none. */
function updateApproval<Message extends UpdatableMessage>(
  messages: Message[],
  { approvalId, messageId }: { readonly approvalId: string; readonly messageId?: string },
  update: (part: MessagePart) => object,
): Message[] {
  const isTarget = (message: Message) =>
    (messageId === undefined || message.id === messageId) &&
    message.parts.some((part) => isOpenApproval(part as MessagePart, approvalId));
  if (!messages.some(isTarget)) return messages;
  const updated = (part: object) =>
    isOpenApproval(part as MessagePart, approvalId) ? update(part as MessagePart) : part;
  return messages.map((message) =>
    isTarget(message) ? { ...message, parts: message.parts.map(updated) } : message,
  );
}

/** The part as the stored history has it: an error if it was approved before, else a denial. */
function closedPart(part: MessagePart, reason: string): object {
  const approval = { ...part.approval, reason };
  if (part.approval?.approved === true) {
    return { ...part, state: "output-error", errorText: reason, approval: part.approval };
  }
  return { ...part, state: "output-denied", approval: { ...approval, approved: false } };
}

/**
 * The messages with one approval closed; the same array if the approval is not open in them.
 *
 * A stock client keeps the approval open until the messages are loaded again.
 */
export function withClosedApproval<Message extends UpdatableMessage>(
  messages: Message[],
  closed: ClosedApproval,
): Message[] {
  return updateApproval(messages, closed, (part) => closedPart(part, closed.reason));
}

/** The messages with one approval decided; the same array if the approval is not open in them. */
export function withDecidedApproval<Message extends UpdatableMessage>(
  messages: Message[],
  { approvalId, state, reason }: DecidedApproval,
): Message[] {
  if (state === "superseded" || state === "expired") {
    return withClosedApproval(messages, { approvalId, state, reason: reason ?? "" });
  }
  const approved = state === "approved";
  if (!approved && state !== "denied") return messages;
  return updateApproval(messages, { approvalId }, (part) =>
    part.state === "approval-requested"
      ? {
          ...part,
          state: "approval-responded",
          approval: { ...part.approval, approved, ...(reason !== undefined && { reason }) },
        }
      : part,
  );
}

/** The parts of a decision that the AI SDK cannot send with its approval response. */
export interface StagedDecision {
  /** Arguments for the call, in place of those that the model chose (A7). */
  readonly edit?: Readonly<Record<string, unknown>>;
  /** Grant later calls of the same tool in this chat (A8). */
  readonly remember?: Remember;
}

/**
 * The later calls that a decision approves too: with `"chat"` those with any arguments.
 *
 * `where` names arguments of the call that must have the values with which it runs; `ttl` is the
 * seconds from the decision on, at most the `grantTtl` of the descriptor.
 */
export type Remember = "chat" | { readonly where?: readonly string[]; readonly ttl?: number };

/** The properties of a request body that hold the staged decisions, by approval id. */
export interface StagedBody {
  readonly edits?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly remember?: Readonly<Record<string, Remember>>;
}

/**
 * Edits and grants that are sent with the next request.
 *
 * The AI SDK sends several approval responses in one request, whose body is not known when the first
 * of them is added. Decisions are therefore staged here; the transport calls `body` for each
 * request, and a decision is cleared once the server has accepted a request with its approval
 * response (A8).
 */
export class StagedDecisions {
  readonly #decisions = new Map<string, StagedDecision>();

  /** Stage a decision for an approval; it replaces an earlier one. */
  stage(approvalId: string, { edit, remember }: StagedDecision): void {
    this.#decisions.delete(approvalId);
    if (edit === undefined && remember === undefined) return;
    this.#decisions.set(approvalId, {
      ...(edit !== undefined && { edit }),
      ...(remember !== undefined && { remember }),
    });
  }

  /** Clear the decisions for approvals whose response was accepted, or that are closed. */
  clear(approvalIds: Iterable<string>): void {
    for (const id of approvalIds) this.#decisions.delete(id);
  }

  /** All staged decisions as properties of a request body; an empty object if there are none. */
  readonly body = (): StagedBody => {
    const edits: Record<string, Readonly<Record<string, unknown>>> = {};
    const remember: Record<string, Remember> = {};
    for (const [id, decision] of this.#decisions) {
      if (decision.edit !== undefined) edits[id] = decision.edit;
      if (decision.remember !== undefined) remember[id] = decision.remember;
    }
    return {
      ...(Object.keys(edits).length > 0 && { edits }),
      ...(Object.keys(remember).length > 0 && { remember }),
    };
  };

  /** The approvals with a staged decision. */
  get approvalIds(): string[] {
    return [...this.#decisions.keys()];
  }
}
