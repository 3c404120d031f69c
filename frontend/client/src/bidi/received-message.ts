import { type Chunk, chunksOfParts, type Part } from "./parts-to-chunks.ts";

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
