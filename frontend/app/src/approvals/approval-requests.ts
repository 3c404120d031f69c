import { type ChatMessage, type PendingApproval, pendingApprovals } from "sluicegate";
import { isRecord } from "../is-record.ts";
import type { DecisionProgress, DecisionsInProgress } from "./decision.ts";
import { isExpired, parseDescriptor } from "./descriptor.ts";
import { type ToolOrigin, toolOrigin } from "./tool-origin.ts";

/** An approval request, as its card shows it. */
export interface ApprovalRequest extends PendingApproval {
  /** The title of the tool. */
  readonly title?: string;
  /** What the worker of the tool declares, if it is one of a worker. */
  readonly origin?: ToolOrigin;
  /** What the call would do, as the server describes it. */
  readonly preview?: unknown;
  /** The digest of what the card shows, if an approval states one. */
  readonly digest?: string;
  /** The decision that this page has made, if there is one. */
  readonly progress?: DecisionProgress;
}

/** Whether a request waits for a person: the server has no decision, and the time is not over. */
export function isOpen({ progress, descriptor }: ApprovalRequest, now = Date.now()): boolean {
  return progress?.state !== "accepted" && !isExpired(parseDescriptor(descriptor), now);
}

/** The properties of a tool part that an approval request needs. */
interface RequestPart {
  readonly toolCallId?: string;
  readonly title?: string;
  readonly toolMetadata?: unknown;
  readonly input?: unknown;
  readonly state?: string;
  readonly approval?: { readonly id: string; readonly approved?: boolean };
}

interface Message {
  readonly id: string;
  readonly parts: readonly object[];
}

function isDecided(part: RequestPart, decisions: DecisionsInProgress): boolean {
  const progress = part.approval && decisions.get(part.approval.id);
  return progress?.state === "accepted";
}

/** The message before the decisions of this page. */
function beforeDecisions(message: Message, decisions: DecisionsInProgress): Message {
  const parts = message.parts as readonly RequestPart[];
  const isAccepted = (part: RequestPart) =>
    part.state === "approval-responded" && isDecided(part, decisions);
  if (!parts.some(isAccepted)) return message;
  return {
    ...message,
    parts: parts.map((part) =>
      isAccepted(part) ? { ...part, state: "approval-requested" } : part,
    ),
  };
}

function toRequest(
  pending: PendingApproval,
  parts: readonly RequestPart[],
  decisions: DecisionsInProgress,
): ApprovalRequest {
  const part = parts.find(({ approval }) => approval?.id === pending.approvalId);
  const progress = decisions.get(pending.approvalId);
  const origin = toolOrigin(part?.toolMetadata);
  // Without a descriptor, the confirmation has the preview.
  const confirmation = isRecord(part?.input) ? part.input.toolConfirmation : undefined;
  const described = isRecord(pending.descriptor) ? pending.descriptor : confirmation;
  const { preview, digest } = isRecord(described) ? described : {};
  return {
    ...pending,
    ...(preview !== undefined && { preview }),
    ...(typeof digest === "string" && { digest }),
    ...(origin !== undefined && { origin }),
    ...(part?.title !== undefined && { title: part.title }),
    ...(progress !== undefined && { progress }),
  };
}

/** What a page knows of its decisions: the settled ones, and the requests beside each of them. */
export interface RequestGroups {
  /** The ids of requests whose group is complete. */
  readonly settled: Set<string>;
  /** The ids that were pending when a decision was first seen, by the id of its request. */
  readonly beside: Map<string, ReadonlySet<string>>;
}

export function noGroups(): RequestGroups {
  return { settled: new Set(), beside: new Map() };
}

/**
 * The open approval requests, including those that this page has decided while others are open; a
 * card keeps its place until the last decision. The ids of a completed group are added to the settled
 * ones: its calls may run, so they are not listed beside the requests of a later step. A request that
 * was not there at a decision is of a later step, or its group has been decided elsewhere.
 */
export function approvalRequests(
  messages: readonly Message[],
  decisions: DecisionsInProgress,
  { settled, beside }: RequestGroups = noGroups(),
): readonly ApprovalRequest[] {
  const last = messages.at(-1);
  if (last === undefined) return [];
  const before = [
    ...messages.slice(0, -1),
    beforeDecisions(last, decisions),
  ] as unknown as ChatMessage[];
  const unsettled = pendingApprovals(before).filter(({ approvalId }) => !settled.has(approvalId));
  const ids = unsettled.map(({ approvalId }) => approvalId);
  const isAccepted = ({ approvalId }: PendingApproval) =>
    decisions.get(approvalId)?.state === "accepted";
  for (const request of unsettled) {
    const id = request.approvalId;
    const group = beside.get(id);
    if (group === undefined && decisions.has(id)) beside.set(id, new Set(ids));
    if (group !== undefined && isAccepted(request) && !ids.every((other) => group.has(other))) {
      settled.add(id);
    }
  }
  const pending = unsettled.filter(({ approvalId }) => !settled.has(approvalId));
  if (pending.every(isAccepted)) {
    for (const { approvalId } of pending) settled.add(approvalId);
    return [];
  }
  const parts = messages.flatMap((message) => message.parts) as readonly RequestPart[];
  return pending.map((approval) => toRequest(approval, parts, decisions));
}

/** Whether two lists of requests render the same. */
export function areSameRequests(
  one: readonly ApprovalRequest[],
  other: readonly ApprovalRequest[],
): boolean {
  return (
    one.length === other.length &&
    one.every(({ progress, ...shown }, index) => {
      const { progress: otherProgress, ...otherShown } = other[index] ?? {};
      return progress === otherProgress && JSON.stringify(shown) === JSON.stringify(otherShown);
    })
  );
}

/** The schema of an answer in place of the tool, if one is accepted. */
export function responseSchema({ descriptor }: ApprovalRequest) {
  const schema = isRecord(descriptor) ? descriptor.responseSchema : undefined;
  // A form has the fields of an object.
  return isRecord(schema) && isRecord(schema.properties) ? schema : undefined;
}
