import type { Major } from "../installed-major.ts";
import { type Chunk, chunksOfParts, type Part } from "./parts-to-chunks.ts";
import {
  announcementOf,
  dataKey,
  type ReceivedCall,
  ReceivedMessage,
  type ReceivedPart,
  STAGES,
} from "./received-message.ts";

const ALWAYS_NEEDED = new Set(["finish", "error", "abort", "message-metadata"]);

/** The chunks that build a part from the beginning. */
function chunksOf(part: ReceivedPart): Chunk[] {
  if (part.kind === "single") return [part.chunk];
  if (part.kind === "call") return chunksOfCall(part);
  const { type, id, text } = part;
  return [
    part.start,
    ...(text === "" ? [] : [{ type: `${type}-delta`, id, delta: text }]),
    ...(part.isDone ? [{ type: `${type}-end`, id }] : []),
  ];
}

function chunksOfCall(call: ReceivedCall): Chunk[] {
  const { id, stage, inputText } = call;
  const delta = { type: "tool-input-delta", toolCallId: id, inputTextDelta: inputText };
  const hasInputText = stage === STAGES.started && inputText !== "";
  return [...stageChunks(call, -1, stage), ...(hasInputText ? [delta] : [])];
}

/** The chunks that advance a call from the stage `after` to the stage `upTo`. */
function stageChunks({ chunks }: ReceivedCall, after: number, upTo: number): Chunk[] {
  return [...chunks]
    .filter(([stage]) => stage > after && stage <= upTo)
    .sort(([one], [other]) => one - other)
    .map(([, chunk]) => chunk);
}

/** The announcement of a call whose input was replaced while the client was away, if it was. */
function missedInput(replayed: ReceivedCall, received: ReceivedCall): Chunk[] {
  const [latest, held] = [announcementOf(replayed), announcementOf(received)];
  const isMissed =
    received.stage === STAGES.inputAvailable &&
    !replayed.chunks.has(STAGES.inputReplaced) &&
    JSON.stringify(latest?.input) !== JSON.stringify(held?.input);
  return isMissed && latest !== undefined ? [latest] : [];
}

function isSame(one: ReceivedPart | undefined, other: ReceivedPart | undefined): boolean {
  if (one?.kind === "text" && other?.kind === "text") {
    return one.type === other.type && one.text === other.text && one.isDone === other.isDone;
  }
  if (one?.kind === "call" && other?.kind === "call") {
    return one.id === other.id && one.stage === other.stage;
  }
  return one?.kind === "single" && other?.kind === "single" && one.chunk.type === other.chunk.type;
}

function isSameCall(one: ReceivedPart, other: ReceivedPart | undefined): boolean {
  return one.kind === "call" && other?.kind === "call" && one.id === other.id;
}

/**
 * Filters a replayed message down to the chunks that the client has not received.
 *
 * A resumed stream replays the message from its beginning: the same parts in the same order, though
 * not in the same chunks. Both messages are therefore accumulated, and the client gets the chunks
 * that its own message lacks: none twice, and none that removes a part, except a `reset-step` that
 * it has not received.
 */
export class ReplayFilter {
  readonly #received: ReceivedMessage;
  readonly #replayed = new ReceivedMessage();

  /** `received` is the client's message; the chunks that `filter` returns are applied to it. */
  constructor(received: ReceivedMessage) {
    this.#received = received;
  }

  /** The chunks that the client needs for the next chunk of the replayed message. */
  filter(chunk: Chunk): Chunk[] {
    const needed = this.#needed(chunk);
    for (const each of needed) this.#received.apply(each);
    return needed;
  }

  /**
   * The chunks that complete the client's message to the stored one; undefined if the client has
   * received another message.
   */
  complete(parts: readonly Part[], major: Major): Chunk[] | undefined {
    const chunks = chunksOfParts(parts, major);
    const stored = new ReceivedMessage();
    for (const chunk of chunks) stored.apply(chunk);
    // The history does not contain text that was followed by a tool call (D4).
    const isReset = major === 7 && this.#received.stepParts.length > 0 && !this.#isPrefix(stored);
    const reset: Chunk[] = isReset ? [{ type: "reset-step" }] : [];
    for (const chunk of reset) this.#received.apply(chunk);
    const needed = [...reset, ...chunks.flatMap((chunk) => this.filter(chunk))];
    const { parts: received } = this.#received;
    const isComplete =
      received.length === this.#replayed.parts.length &&
      this.#replayed.parts.every((part, index) => {
        const other = received[index];
        return isSame(part, other) || isSameCall(part, other);
      });
    return isComplete ? needed : undefined;
  }

  /** Whether the current step of the client's message is a prefix of the stored one. */
  #isPrefix(stored: ReceivedMessage): boolean {
    const { parts, stepParts } = this.#received;
    return stepParts.every((part, index) => {
      const other = stored.parts[parts.length - stepParts.length + index];
      if (part.kind !== "text" || other?.kind !== "text") {
        return isSame(part, other) || isSameCall(part, other);
      }
      const isPrefix = part.isDone ? other.text === part.text : other.text.startsWith(part.text);
      return other.type === part.type && isPrefix;
    });
  }

  /** Whether the replay has reached the end of the client's message. */
  get #hasCaughtUp(): boolean {
    return this.#replayed.parts.length >= this.#received.parts.length;
  }

  #needed(chunk: Chunk): Chunk[] {
    if (ALWAYS_NEEDED.has(chunk.type)) return [chunk];
    if (chunk.type.startsWith("data-")) return this.#data(chunk);
    if (chunk.type === "reset-step") return this.#resetStep(chunk);
    const index = this.#replayed.apply(chunk);
    switch (chunk.type) {
      case "start":
        return this.#start(chunk);
      case "start-step": {
        const isNew = this.#replayed.trailingSteps > this.#received.trailingSteps;
        return this.#hasCaughtUp && isNew ? [chunk] : [];
      }
      case "finish-step":
        return this.#hasCaughtUp ? [chunk] : [];
      default:
        return index === undefined ? [] : this.#part(index, chunk);
    }
  }

  #start(chunk: Chunk): Chunk[] {
    if (!this.#received.hasStarted) return [chunk];
    const { messageMetadata } = chunk;
    return messageMetadata === undefined ? [] : [{ type: "message-metadata", messageMetadata }];
  }

  #data(chunk: Chunk): Chunk[] {
    this.#replayed.apply(chunk);
    if (chunk.transient === true) return this.#hasCaughtUp ? [chunk] : [];
    if (chunk.id === undefined) {
      return this.#replayed.anonymousData > this.#received.anonymousData ? [chunk] : [];
    }
    const isNew = this.#received.data.get(dataKey(chunk))?.json !== JSON.stringify(chunk.data);
    return this.#hasCaughtUp && isNew ? [chunk] : [];
  }

  #resetStep(chunk: Chunk): Chunk[] {
    const removed = this.#replayed.stepParts;
    const start = this.#replayed.parts.length - removed.length;
    const received = this.#received.parts.slice(start);
    this.#replayed.apply(chunk);
    // If the client's parts differ, it has received this reset already.
    const isNew =
      removed.length === received.length &&
      removed.every((part, index) => isSame(part, received[index]));
    return isNew && removed.length > 0 ? [chunk] : [];
  }

  #part(index: number, chunk: Chunk): Chunk[] {
    const replayed = this.#replayed.parts[index];
    const received = this.#received.parts[index];
    if (replayed === undefined || index > this.#received.parts.length) return [];
    if (received === undefined) {
      const steps = Math.max(0, replayed.steps - this.#received.trailingSteps);
      return [...Array<Chunk>(steps).fill({ type: "start-step" }), ...chunksOf(replayed)];
    }
    if (replayed.kind === "text" && received.kind === "text" && replayed.type === received.type) {
      if (received.isDone) return [];
      const isPrefix = replayed.text.startsWith(received.text);
      const text = isPrefix ? replayed.text.slice(received.text.length) : "";
      const delta = { type: `${received.type}-delta`, id: received.id, delta: text };
      return [
        ...(text === "" ? [] : [delta]),
        ...(replayed.isDone ? [{ ...chunk, id: received.id }] : []),
      ];
    }
    if (replayed.kind === "call" && received.kind === "call" && replayed.id === received.id) {
      return this.#call(replayed, received);
    }
    return [];
  }

  #call(replayed: ReceivedCall, received: ReceivedCall): Chunk[] {
    const { stage, inputText } = replayed;
    if (stage > received.stage) {
      return [...missedInput(replayed, received), ...stageChunks(replayed, received.stage, stage)];
    }
    if (stage < received.stage) return [];
    // A call may have any number of preliminary outputs.
    if (stage === STAGES.preliminaryOutput) return stageChunks(replayed, stage - 1, stage);
    const isLonger = inputText.length > received.inputText.length;
    if (stage !== STAGES.started || !isLonger) return [];
    const inputTextDelta = inputText.slice(received.inputText.length);
    return [{ type: "tool-input-delta", toolCallId: replayed.id, inputTextDelta }];
  }
}
