/** A chunk of a UI message stream, whatever the major. */
export interface Chunk {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A part of a UI message, whatever the major. */
export interface Part {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** How far a call has come; a later stage never goes back to an earlier one. */
export const STAGES = {
  started: 0,
  announced: 1,
  asked: 2,
  answered: 3,
  /** A gated tool of the page is announced again after the yes (T9). */
  announcedAgain: 4,
  atWork: 5,
  ended: 6,
} as const;

type Stage = (typeof STAGES)[keyof typeof STAGES];

interface Placed {
  /** Steps that began between the piece before and this one. */
  readonly steps: number;
}

/** A block of text or reasoning. */
export interface Words extends Placed {
  readonly kind: "words";
  readonly start: Chunk;
  readonly type: "text" | "reasoning";
  readonly id: string;
  text: string;
  isDone: boolean;
}

/** A tool call, with the chunk that brought it to each stage. */
export interface Call extends Placed {
  readonly kind: "call";
  readonly id: string;
  readonly told: Map<Stage, Chunk>;
  stage: Stage;
  inputText: string;
}

/** A part that comes whole: a file, a source. */
export interface Thing extends Placed {
  readonly kind: "thing";
  readonly chunk: Chunk;
}

export type Piece = Words | Call | Thing;

interface Data {
  readonly chunk: Chunk;
  readonly json: string;
  readonly step: number;
}

const CALL_STAGES: Readonly<Record<string, Stage>> = {
  "tool-input-start": STAGES.started,
  "tool-input-available": STAGES.announced,
  "tool-input-error": STAGES.ended,
  "tool-approval-request": STAGES.asked,
  "tool-approval-response": STAGES.answered,
  "tool-output-available": STAGES.ended,
  "tool-output-error": STAGES.ended,
  "tool-output-denied": STAGES.ended,
};

function words(chunk: Chunk): ["text" | "reasoning", string] | undefined {
  const found = /^(text|reasoning)-(start|delta|end)$/.exec(chunk.type);
  return found ? [found[1] as "text" | "reasoning", found[2] ?? ""] : undefined;
}

/** What a client holds of one assistant message, as the chunks have built it. */
export class Pieces {
  readonly list: Piece[] = [];
  /** Lasting data by type and id. */
  readonly data: Map<string, Data> = new Map();
  messageId: string | undefined;
  hasStarted = false;
  /** Steps that began after the last piece. */
  trailing = 0;
  /** Lasting data without an id, which is added each time it comes. */
  anonymous = 0;
  #steps = 0;
  #stepBegins = 0;

  /** The pieces of the step that is open. */
  get ofStep(): Piece[] {
    return this.list.slice(this.#stepBegins);
  }

  /** Take a chunk; returns the place of the piece it belongs to, if there is one. */
  apply(chunk: Chunk): number | undefined {
    const spoken = words(chunk);
    if (spoken !== undefined) return this.#speak(chunk, ...spoken);
    if (chunk.type.startsWith("tool-")) return this.#call(chunk);
    if (chunk.type.startsWith("data-")) return this.#keepData(chunk);
    switch (chunk.type) {
      case "start":
        this.hasStarted = true;
        if (typeof chunk.messageId === "string") this.messageId = chunk.messageId;
        return undefined;
      case "start-step":
        this.trailing += 1;
        this.#steps += 1;
        this.#stepBegins = this.list.length;
        return undefined;
      case "reset-step":
        this.#reset();
        return undefined;
      case "finish-step":
      case "finish":
      case "message-metadata":
      case "error":
      case "abort":
        return undefined;
      default:
        return this.#push({ kind: "thing", chunk, steps: this.trailing });
    }
  }

  #push(piece: Piece): number {
    this.trailing = 0;
    return this.list.push(piece) - 1;
  }

  #speak(chunk: Chunk, type: "text" | "reasoning", what: string): number | undefined {
    const id = String(chunk.id);
    if (what === "start") {
      const steps = this.trailing;
      return this.#push({ kind: "words", start: chunk, type, id, text: "", isDone: false, steps });
    }
    const isOpen = (piece: Piece): boolean =>
      piece.kind === "words" && piece.type === type && piece.id === id && !piece.isDone;
    const place = this.list.findLastIndex(isOpen);
    const piece = this.list[place];
    if (piece?.kind !== "words") return undefined;
    if (what === "delta") piece.text += String(chunk.delta);
    else piece.isDone = true;
    return place;
  }

  #call(chunk: Chunk): number | undefined {
    const place = this.list.findLastIndex((piece) => piece.kind === "call" && isOf(piece, chunk));
    const found = this.list[place];
    if (chunk.type === "tool-input-delta") {
      if (found?.kind === "call") found.inputText += String(chunk.inputTextDelta);
      return found && place;
    }
    const stage = this.#stageOf(chunk, found);
    if (stage === undefined) return found && place;
    if (found?.kind === "call") {
      found.stage = stage;
      found.told.set(stage, chunk);
      return place;
    }
    const told = new Map([[stage, chunk]]);
    const id = String(chunk.toolCallId);
    return this.#push({ kind: "call", id, told, stage, inputText: "", steps: this.trailing });
  }

  #stageOf(chunk: Chunk, found: Piece | undefined): Stage | undefined {
    const isKnown = found?.kind === "call" && found.stage >= STAGES.announced;
    if (chunk.type === "tool-input-available" && isKnown) return STAGES.announcedAgain;
    if (chunk.type === "tool-output-available" && chunk.preliminary === true) return STAGES.atWork;
    return CALL_STAGES[chunk.type];
  }

  #keepData(chunk: Chunk): undefined {
    if (chunk.transient === true) return undefined;
    if (chunk.id === undefined) this.anonymous += 1;
    else {
      const json = JSON.stringify(chunk.data);
      this.data.set(dataKey(chunk), { chunk, json, step: this.#steps });
    }
    return undefined;
  }

  #reset(): void {
    this.list.length = this.#stepBegins;
    this.trailing = this.#steps > 0 ? 1 : 0;
    for (const [key, { step }] of this.data) if (step === this.#steps) this.data.delete(key);
  }
}

function isOf(call: Call, chunk: Chunk): boolean {
  if (chunk.type !== "tool-approval-response") return call.id === chunk.toolCallId;
  return call.told.get(STAGES.asked)?.approvalId === chunk.approvalId;
}

export function dataKey(chunk: Chunk): string {
  return `${chunk.type}/${String(chunk.id)}`;
}
