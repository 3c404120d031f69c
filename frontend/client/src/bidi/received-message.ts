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

/** The stages of a tool call; a call never returns to an earlier stage. */
export const STAGES = {
  started: 0,
  inputAvailable: 1,
  /** Before the approval request, the input is replaced by the one that would run (T9). */
  inputReplaced: 2,
  approvalRequested: 3,
  approvalResponded: 4,
  /** A client-side call that requires approval is announced again after it was approved (T9). */
  announcedAgain: 5,
  preliminaryOutput: 6,
  ended: 7,
} as const;

export type Stage = (typeof STAGES)[keyof typeof STAGES];

interface Positioned {
  /** The number of steps that were started between the previous part and this one. */
  readonly steps: number;
}

/** A text or reasoning part. */
export interface ReceivedText extends Positioned {
  readonly kind: "text";
  readonly start: Chunk;
  readonly type: "text" | "reasoning";
  readonly id: string;
  text: string;
  isDone: boolean;
}

/** A tool call, with the chunk of each stage it has reached. */
export interface ReceivedCall extends Positioned {
  readonly kind: "call";
  readonly id: string;
  readonly chunks: Map<Stage, Chunk>;
  stage: Stage;
  inputText: string;
}

/** A part that consists of a single chunk, such as a file or a source. */
export interface ReceivedSingle extends Positioned {
  readonly kind: "single";
  readonly chunk: Chunk;
}

export type ReceivedPart = ReceivedText | ReceivedCall | ReceivedSingle;

interface Data {
  readonly json: string;
  readonly step: number;
}

const CALL_STAGES: Readonly<Record<string, Stage>> = {
  "tool-input-start": STAGES.started,
  "tool-input-available": STAGES.inputAvailable,
  "tool-input-error": STAGES.ended,
  "tool-approval-request": STAGES.approvalRequested,
  "tool-approval-response": STAGES.approvalResponded,
  "tool-output-available": STAGES.ended,
  "tool-output-error": STAGES.ended,
  "tool-output-denied": STAGES.ended,
};

function parseTextType(type: string): ["text" | "reasoning", string] | undefined {
  const match = /^(text|reasoning)-(start|delta|end)$/.exec(type);
  return match ? [match[1] as "text" | "reasoning", match[2] ?? ""] : undefined;
}

function isOfCall(call: ReceivedCall, chunk: Chunk): boolean {
  if (chunk.type !== "tool-approval-response") return call.id === chunk.toolCallId;
  return call.chunks.get(STAGES.approvalRequested)?.approvalId === chunk.approvalId;
}

/** The announcement of a call with the input that it had last before its approval request. */
export function announcementOf({ chunks }: ReceivedCall): Chunk | undefined {
  return chunks.get(STAGES.inputReplaced) ?? chunks.get(STAGES.inputAvailable);
}

/** The identity of a persistent data part. */
export function dataKey(chunk: Chunk): string {
  return `${chunk.type}/${String(chunk.id)}`;
}

/** The state of one assistant message, accumulated from the chunks that a client has received. */
export class ReceivedMessage {
  readonly parts: ReceivedPart[] = [];
  /** Persistent data parts by type and id. */
  readonly data: Map<string, Data> = new Map();
  messageId: string | undefined;
  hasStarted = false;
  /** The number of steps that were started after the last part. */
  trailingSteps = 0;
  /** The number of persistent data parts without an id, each of which adds a part. */
  anonymousData = 0;
  #steps = 0;
  #stepStart = 0;

  /** The state of a message with these parts; of an empty one if undefined. */
  static from(message: { id: string; parts: readonly Part[] } | undefined): ReceivedMessage {
    const received = new ReceivedMessage();
    if (message === undefined) return received;
    received.messageId = message.id;
    for (const chunk of chunksOfParts(message.parts, 7)) received.apply(chunk);
    return received;
  }

  /** The parts of the current step. */
  get stepParts(): ReceivedPart[] {
    return this.parts.slice(this.#stepStart);
  }

  /** Apply a chunk; returns the index of the part it belongs to, if there is one. */
  apply(chunk: Chunk): number | undefined {
    const textType = parseTextType(chunk.type);
    if (textType !== undefined) return this.#applyText(chunk, ...textType);
    if (chunk.type.startsWith("tool-")) return this.#applyCall(chunk);
    if (chunk.type.startsWith("data-")) return this.#applyData(chunk);
    switch (chunk.type) {
      case "start":
        this.hasStarted = true;
        if (typeof chunk.messageId === "string") this.messageId = chunk.messageId;
        return undefined;
      case "start-step":
        this.trailingSteps += 1;
        this.#steps += 1;
        this.#stepStart = this.parts.length;
        return undefined;
      case "reset-step":
        this.#resetStep();
        return undefined;
      case "finish-step":
      case "finish":
      case "message-metadata":
      case "error":
      case "abort":
        return undefined;
      default:
        return this.#push({ kind: "single", chunk, steps: this.trailingSteps });
    }
  }

  #push(part: ReceivedPart): number {
    this.trailingSteps = 0;
    return this.parts.push(part) - 1;
  }

  #applyText(chunk: Chunk, type: "text" | "reasoning", event: string): number | undefined {
    const id = String(chunk.id);
    if (event === "start") {
      const steps = this.trailingSteps;
      return this.#push({ kind: "text", start: chunk, type, id, text: "", isDone: false, steps });
    }
    const isOpen = (part: ReceivedPart): boolean =>
      part.kind === "text" && part.type === type && part.id === id && !part.isDone;
    const index = this.parts.findLastIndex(isOpen);
    const part = this.parts[index];
    if (part?.kind !== "text") return undefined;
    if (event === "delta") part.text += String(chunk.delta);
    else part.isDone = true;
    return index;
  }

  #applyCall(chunk: Chunk): number | undefined {
    const index = this.parts.findLastIndex((part) => part.kind === "call" && isOfCall(part, chunk));
    const part = this.parts[index];
    if (chunk.type === "tool-input-delta") {
      if (part?.kind === "call") part.inputText += String(chunk.inputTextDelta);
      return part && index;
    }
    const stage = this.#stageOf(chunk, part);
    if (stage === undefined) return part && index;
    if (part?.kind === "call") {
      part.stage = stage;
      part.chunks.set(stage, chunk);
      return index;
    }
    const chunks = new Map([[stage, chunk]]);
    const id = String(chunk.toolCallId);
    const steps = this.trailingSteps;
    return this.#push({ kind: "call", id, chunks, stage, inputText: "", steps });
  }

  #stageOf(chunk: Chunk, part: ReceivedPart | undefined): Stage | undefined {
    if (chunk.type === "tool-input-available" && part?.kind === "call") {
      if (part.stage >= STAGES.approvalRequested) return STAGES.announcedAgain;
      // AI SDK 6 gets no request that was decided; a replaced input differs from the one before.
      if (part.stage >= STAGES.inputAvailable) {
        const isSame = JSON.stringify(announcementOf(part)?.input) === JSON.stringify(chunk.input);
        return isSame ? STAGES.announcedAgain : STAGES.inputReplaced;
      }
    }
    if (chunk.type === "tool-output-available" && chunk.preliminary === true) {
      return STAGES.preliminaryOutput;
    }
    return CALL_STAGES[chunk.type];
  }

  #applyData(chunk: Chunk): undefined {
    if (chunk.transient === true) return undefined;
    if (chunk.id === undefined) this.anonymousData += 1;
    else {
      const json = JSON.stringify(chunk.data);
      this.data.set(dataKey(chunk), { json, step: this.#steps });
    }
    return undefined;
  }

  #resetStep(): void {
    this.parts.length = this.#stepStart;
    this.trailingSteps = this.#steps > 0 ? 1 : 0;
    for (const [key, { step }] of this.data) if (step === this.#steps) this.data.delete(key);
  }
}

/** The chunks that build a message with these parts, limited to those the major supports. */
export function chunksOfParts(parts: readonly Part[], major: 6 | 7): Chunk[] {
  return parts.flatMap((part, index) => chunksOfPart(part, index, major));
}

function chunksOfPart(part: Part, index: number, major: 6 | 7): Chunk[] {
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

function callChunks(part: Part, major: 6 | 7): Chunk[] {
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
