import type { Major } from "../installed-major.ts";

/** A chunk of a UI message stream, of either major. */
export interface Chunk {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A part of a UI message, of either major. */
export interface Part {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The chunks that build a message with these parts, limited to those the major supports. */
export function chunksOfParts(parts: readonly Part[], major: Major): Chunk[] {
  return parts.flatMap((part, index) => chunksOfPart(part, index, major));
}

function chunksOfPart(part: Part, index: number, major: Major): Chunk[] {
  if (part.type === "text" || part.type === "reasoning") {
    return textChunks(part, part.type, typeof part.id === "string" ? part.id : `part-${index}`);
  }
  if (part.type === "step-start") return [{ type: "start-step" }];
  if (part.type === "dynamic-tool" || part.type.startsWith("tool-")) return callChunks(part, major);
  return [part];
}

function definedOnly(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).filter(([, value]) => value !== undefined && value !== null),
  );
}

function textChunks(part: Part, type: "text" | "reasoning", id: string): Chunk[] {
  const isDone = part.state !== "streaming";
  return [
    { type: `${type}-start`, id, ...definedOnly({ providerMetadata: part.providerMetadata }) },
    ...(part.text === "" ? [] : [{ type: `${type}-delta`, id, delta: part.text }]),
    ...(isDone ? [{ type: `${type}-end`, id }] : []),
  ];
}

interface Approval {
  readonly id: string;
  readonly approved?: boolean;
  readonly reason?: string;
  readonly requestReason?: string;
  readonly descriptor?: unknown;
  readonly isAutomatic?: boolean;
}

function approvalChunks(toolCallId: unknown, approval: Approval): Chunk[] {
  const { id: approvalId, approved, reason, requestReason, descriptor, isAutomatic } = approval;
  return [
    {
      type: "tool-approval-request",
      approvalId,
      toolCallId,
      ...definedOnly({ reason: requestReason, approvalDescriptor: descriptor, isAutomatic }),
    },
    ...(approved === undefined
      ? []
      : [{ type: "tool-approval-response", approvalId, approved, ...definedOnly({ reason }) }]),
  ];
}

function outcomeChunks(part: Part): Chunk[] {
  const { toolCallId, state, output, errorText, preliminary } = part;
  switch (state) {
    case "output-available":
      return [
        { type: "tool-output-available", toolCallId, output, ...definedOnly({ preliminary }) },
      ];
    case "output-error":
      return [{ type: "tool-output-error", toolCallId, errorText }];
    case "output-denied":
      return [{ type: "tool-output-denied", toolCallId }];
    default:
      return [];
  }
}

function callChunks(part: Part, major: Major): Chunk[] {
  const { toolCallId, state, input, rawInput, title, providerExecuted, toolMetadata } = part;
  const isDynamic = part.type === "dynamic-tool";
  const toolName = isDynamic ? part.toolName : part.type.slice("tool-".length);
  const tool = {
    toolCallId,
    toolName,
    ...definedOnly({ providerExecuted, title, toolMetadata, ...(isDynamic && { dynamic: true }) }),
  };
  const start: Chunk = { type: "tool-input-start", ...tool };
  if (state === "input-streaming") {
    const delta = { type: "tool-input-delta", toolCallId, inputTextDelta: rawInput };
    return typeof rawInput === "string" ? [start, delta] : [start];
  }
  const announcement: Chunk = { type: "tool-input-available", ...tool, input: input ?? {} };
  const approval = part.approval as Approval | undefined;
  // AI SDK 6 has no chunk for a decision, and a request without one would stay open.
  const hasApproval = major === 7 || approval?.approved === undefined;
  const isAnnouncedAgain = state === "input-available" && approval?.approved === true;
  return [
    announcement,
    ...(hasApproval && approval !== undefined ? approvalChunks(toolCallId, approval) : []),
    ...(isAnnouncedAgain ? [announcement] : []),
    ...outcomeChunks(part),
  ];
}
