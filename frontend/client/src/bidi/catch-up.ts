import { chunksOfParts } from "./parts.ts";
import {
  type Call,
  type Chunk,
  dataKey,
  type Part,
  type Piece,
  Pieces,
  STAGES,
  type Words,
} from "./pieces.ts";

const ALWAYS = new Set(["finish", "error", "abort", "message-metadata"]);

/** The chunks that build a piece from nothing. */
function built(piece: Piece): Chunk[] {
  if (piece.kind === "thing") return [piece.chunk];
  if (piece.kind === "call") return builtCall(piece);
  const { type, id, text } = piece;
  return [
    piece.start,
    ...(text === "" ? [] : [{ type: `${type}-delta`, id, delta: text }]),
    ...(piece.isDone ? [{ type: `${type}-end`, id }] : []),
  ];
}

function builtCall({ id, told, stage, inputText }: Call): Chunk[] {
  const delta = { type: "tool-input-delta", toolCallId: id, inputTextDelta: inputText };
  const isTyping = stage === STAGES.started && inputText !== "";
  return [...byStage(told, -1, stage), ...(isTyping ? [delta] : [])];
}

/** What brought a call from one stage, which it has reached, to another. */
function byStage(told: Call["told"], above: number, upTo: number): Chunk[] {
  return [...told]
    .filter(([stage]) => stage > above && stage <= upTo)
    .sort(([one], [other]) => one - other)
    .map(([, chunk]) => chunk);
}

function isSame(one: Piece | undefined, other: Piece | undefined): boolean {
  if (one?.kind === "words" && other?.kind === "words") {
    return one.type === other.type && one.text === other.text && one.isDone === other.isDone;
  }
  if (one?.kind === "call" && other?.kind === "call") {
    return one.id === other.id && one.stage === other.stage;
  }
  return one?.kind === "thing" && other?.kind === "thing" && one.chunk.type === other.chunk.type;
}

function isOneCall(one: Piece, other: Piece | undefined): boolean {
  return one.kind === "call" && other?.kind === "call" && one.id === other.id;
}

/**
 * Brings a client that holds part of a message to what is told of it again from the beginning.
 *
 * A resumed message is the same as the one that was cut off, in the same order, though not in the
 * same chunks. So both are kept as pieces, and the client gets what its own pieces lack: nothing
 * twice, and nothing that takes a piece back, except `reset-step` where it has not come yet.
 */
export class CatchUp {
  readonly #have: Pieces;
  readonly #want = new Pieces();

  /** Take what the client holds; it is kept up to date with what `take` returns. */
  constructor(have: Pieces) {
    this.#have = have;
  }

  /** Take the next chunk of the message that is told again; returns what the client needs of it. */
  take(chunk: Chunk): Chunk[] {
    const needed = this.#needed(chunk);
    for (const each of needed) this.#have.apply(each);
    return needed;
  }

  /** Take the whole message as it is stored; undefined if the client holds another one. */
  settle(parts: readonly Part[], major: 6 | 7): Chunk[] | undefined {
    const told = chunksOfParts(parts, major);
    const whole = new Pieces();
    for (const chunk of told) whole.apply(chunk);
    // Text that a call has followed is not in the history (D4).
    const isTakenBack = major === 7 && this.#have.ofStep.length > 0 && !this.#fits(whole);
    const back: Chunk[] = isTakenBack ? [{ type: "reset-step" }] : [];
    for (const chunk of back) this.#have.apply(chunk);
    const needed = [...back, ...told.flatMap((chunk) => this.take(chunk))];
    const { list } = this.#have;
    const isAll =
      list.length === this.#want.list.length &&
      this.#want.list.every((piece, place) => this.#isCovered(piece, list[place]));
    return isAll ? needed : undefined;
  }

  /** Whether the client's open step is the beginning of what is told. */
  #fits(whole: Pieces): boolean {
    const { list, ofStep } = this.#have;
    return ofStep.every((have, index) => {
      const want = whole.list[list.length - ofStep.length + index];
      if (have.kind !== "words" || want?.kind !== "words")
        return isSame(have, want) || isOneCall(have, want);
      const isBeginning = have.isDone ? want.text === have.text : want.text.startsWith(have.text);
      return want.type === have.type && isBeginning;
    });
  }

  #isCovered(want: Piece, have: Piece | undefined): boolean {
    return isSame(want, have) || isOneCall(want, have);
  }

  /** Whether everything that the client holds has been told again. */
  get #isLevel(): boolean {
    return this.#want.list.length >= this.#have.list.length;
  }

  #needed(chunk: Chunk): Chunk[] {
    if (ALWAYS.has(chunk.type)) return [chunk];
    if (chunk.type.startsWith("data-")) return this.#data(chunk);
    if (chunk.type === "reset-step") return this.#reset(chunk);
    const place = this.#want.apply(chunk);
    switch (chunk.type) {
      case "start":
        return this.#start(chunk);
      case "start-step":
        return this.#isLevel && this.#want.trailing > this.#have.trailing ? [chunk] : [];
      case "finish-step":
        return this.#isLevel ? [chunk] : [];
      default:
        return place === undefined ? [] : this.#piece(place, chunk);
    }
  }

  #start(chunk: Chunk): Chunk[] {
    if (!this.#have.hasStarted) return [chunk];
    const { messageMetadata } = chunk;
    return messageMetadata === undefined ? [] : [{ type: "message-metadata", messageMetadata }];
  }

  #data(chunk: Chunk): Chunk[] {
    this.#want.apply(chunk);
    if (chunk.transient === true) return this.#isLevel ? [chunk] : [];
    if (chunk.id === undefined) return this.#want.anonymous > this.#have.anonymous ? [chunk] : [];
    const isNew = this.#have.data.get(dataKey(chunk))?.json !== JSON.stringify(chunk.data);
    return this.#isLevel && isNew ? [chunk] : [];
  }

  #reset(chunk: Chunk): Chunk[] {
    const gone = this.#want.ofStep;
    const held = this.#have.list.slice(this.#want.list.length - gone.length);
    this.#want.apply(chunk);
    // Where the client holds something else, it has been taken back there already.
    const isNew = gone.length === held.length && gone.every((one, at) => isSame(one, held[at]));
    return isNew && gone.length > 0 ? [chunk] : [];
  }

  #piece(place: number, chunk: Chunk): Chunk[] {
    const want = this.#want.list[place];
    const have = this.#have.list[place];
    if (want === undefined || place > this.#have.list.length) return [];
    if (have === undefined) {
      const steps = Math.max(0, want.steps - this.#have.trailing);
      return [...Array<Chunk>(steps).fill({ type: "start-step" }), ...built(want)];
    }
    if (want.kind === "words" && have.kind === "words" && want.type === have.type) {
      return this.#words(want, have, chunk);
    }
    if (want.kind === "call" && have.kind === "call" && want.id === have.id) {
      return this.#call(want, have);
    }
    return [];
  }

  #words(want: Words, have: Words, chunk: Chunk): Chunk[] {
    if (have.isDone) return [];
    const { id, type } = have;
    const rest = want.text.startsWith(have.text) ? want.text.slice(have.text.length) : "";
    const delta = { type: `${type}-delta`, id, delta: rest };
    return [...(rest === "" ? [] : [delta]), ...(want.isDone ? [{ ...chunk, id }] : [])];
  }

  #call(want: Call, have: Call): Chunk[] {
    if (want.stage > have.stage) return byStage(want.told, have.stage, want.stage);
    if (want.stage < have.stage) return [];
    if (want.stage === STAGES.atWork) return byStage(want.told, STAGES.atWork - 1, STAGES.atWork);
    const isLonger = want.inputText.length > have.inputText.length;
    if (want.stage !== STAGES.started || !isLonger) return [];
    const inputTextDelta = want.inputText.slice(have.inputText.length);
    return [{ type: "tool-input-delta", toolCallId: want.id, inputTextDelta }];
  }
}
