import { type Chunk, type Part, Pieces } from "./pieces.ts";

/** The properties of an object that are there. */
function given(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).filter(([, value]) => value !== undefined && value !== null),
  );
}

function spoken(part: Part, type: "text" | "reasoning", id: string): Chunk[] {
  const isDone = part.state !== "streaming";
  return [
    { type: `${type}-start`, id, ...given({ providerMetadata: part.providerMetadata }) },
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

function asked(toolCallId: unknown, approval: Approval): Chunk[] {
  const { id: approvalId, approved, reason, requestReason, descriptor, isAutomatic } = approval;
  return [
    {
      type: "tool-approval-request",
      approvalId,
      toolCallId,
      ...given({ reason: requestReason, approvalDescriptor: descriptor, isAutomatic }),
    },
    ...(approved === undefined
      ? []
      : [{ type: "tool-approval-response", approvalId, approved, ...given({ reason }) }]),
  ];
}

function ended(part: Part): Chunk[] {
  const { toolCallId, state, output, errorText, preliminary } = part;
  switch (state) {
    case "output-available":
      return [{ type: "tool-output-available", toolCallId, output, ...given({ preliminary }) }];
    case "output-error":
      return [{ type: "tool-output-error", toolCallId, errorText }];
    case "output-denied":
      return [{ type: "tool-output-denied", toolCallId }];
    default:
      return [];
  }
}

function called(part: Part, major: 6 | 7): Chunk[] {
  const { toolCallId, state, input, rawInput, title, providerExecuted, toolMetadata } = part;
  const isDynamic = part.type === "dynamic-tool";
  const toolName = isDynamic ? part.toolName : part.type.slice("tool-".length);
  const facts = {
    toolCallId,
    toolName,
    ...given({ providerExecuted, title, toolMetadata, ...(isDynamic && { dynamic: true }) }),
  };
  const start: Chunk = { type: "tool-input-start", ...facts };
  if (state === "input-streaming") {
    const delta = { type: "tool-input-delta", toolCallId, inputTextDelta: rawInput };
    return typeof rawInput === "string" ? [start, delta] : [start];
  }
  const announced: Chunk = { type: "tool-input-available", ...facts, input: input ?? {} };
  const approval = part.approval as Approval | undefined;
  // AI SDK 6 has no chunk for a decision, and a request without one would stay open.
  const isTold = major === 7 || approval?.approved === undefined;
  const isAgain = state === "input-available" && approval?.approved === true;
  return [
    announced,
    ...(isTold && approval !== undefined ? asked(toolCallId, approval) : []),
    ...(isAgain ? [announced] : []),
    ...ended(part),
  ];
}

function chunksOf(part: Part, index: number, major: 6 | 7): Chunk[] {
  if (part.type === "text" || part.type === "reasoning") {
    return spoken(part, part.type, typeof part.id === "string" ? part.id : `part-${index}`);
  }
  if (part.type === "step-start") return [{ type: "start-step" }];
  if (part.type === "dynamic-tool" || part.type.startsWith("tool-")) return called(part, major);
  return [part];
}

/** Chunks that build a message of these parts, as far as a client of that major may get them. */
export function chunksOfParts(parts: readonly Part[], major: 6 | 7): Chunk[] {
  return parts.flatMap((part, index) => chunksOf(part, index, major));
}

/** What a client holds that holds a message of these parts. */
export function piecesOf(message: { id: string; parts: readonly Part[] } | undefined): Pieces {
  const pieces = new Pieces();
  if (message === undefined) return pieces;
  pieces.messageId = message.id;
  for (const chunk of chunksOfParts(message.parts, 7)) pieces.apply(chunk);
  return pieces;
}
