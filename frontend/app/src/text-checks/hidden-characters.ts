import { codePointName } from "./character-names.ts";
import { areObscuring } from "./combining-marks.ts";

/** A character that is shown by its name: invisible, bidirectional, or an obscuring mark. */
export type HiddenKind = "invisible" | "bidi" | "mark";

/** A piece of a text: visible text, or a run of one hidden character. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: HiddenKind; readonly character: string; readonly count: number };

/**
 * Characters that are invisible or change the reading order: control and format characters (bidi,
 * zero-width, tags), unusual spaces, fillers, variation selectors, and U+2800.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/u;

const BIDI = /\p{Bidi_Control}/u;

const MARK = /^\p{M}/u;
const MARKS = /\p{M}+/uy;
/** Marks that are invisible by themselves. */
const SELECTORS = /[\p{Default_Ignorable_Code_Point}]/u;

const ALLOWED: ReadonlySet<string> = new Set([" ", "\n", "\t"]);

/** An emoji sequence: joiners, selectors and keycaps are visible as part of it. */
const EMOJI =
  /[0-9#*]\ufe0f?\u20e3|\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f|\u200d\p{Extended_Pictographic})*/uy;

function matchAt(pattern: RegExp, text: string, index: number): string {
  pattern.lastIndex = index;
  return pattern.exec(text)?.[0] ?? "";
}

/** Collects the pieces of a text. */
class PieceList {
  readonly pieces: Piece[] = [];
  #text = "";

  addText(text: string): void {
    this.#text += text;
  }

  addHidden(kind: HiddenKind, character: string): void {
    this.close();
    const last = this.pieces.at(-1);
    const isRepeated = last?.kind === kind && last.character === character;
    if (isRepeated) this.pieces.pop();
    this.pieces.push({ kind, character, count: isRepeated ? last.count + 1 : 1 });
  }

  close(): void {
    if (this.#text !== "") this.pieces.push({ kind: "text", text: this.#text });
    this.#text = "";
  }
}

/**
 * Split a text so that hidden characters can be shown by name; line breaks and tabs are text.
 *
 * Combining marks that obscure their character are hidden characters too: they are not rendered.
 */
export function visiblePieces(text: string): Piece[] {
  const list = new PieceList();
  for (let index = 0; index < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(index) ?? 0);
    const isBase = !(MARK.test(character) && isVisible(character));
    const base = isBase ? matchAt(EMOJI, text, index) || character : "";
    const isHidden = base === character && !isVisible(character);
    if (isHidden) list.addHidden(BIDI.test(character) ? "bidi" : "invisible", character);
    else list.addText(base);
    index += base.length;
    const marks = matchAt(MARKS, text, index).split(SELECTORS)[0] ?? "";
    if (areObscuring(base, marks)) for (const mark of marks) list.addHidden("mark", mark);
    else list.addText(marks);
    index += marks.length;
  }
  list.close();
  return list.pieces;
}

/** Whether a character may be hidden in some text. */
export function mayBeHidden(character: string): boolean {
  return !isVisible(character) || MARK.test(character);
}

function isVisible(character: string): boolean {
  return ALLOWED.has(character) || !INVISIBLE.test(character);
}

/** Equivalent JSON in which hidden characters are escaped. */
export function visibleJson(value: unknown): string {
  return visiblePieces(JSON.stringify(value, null, 2))
    .map((piece) => {
      if (piece.kind === "text") return piece.text;
      const units = piece.character.split("");
      const escaped = units.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
      return escaped.join("").repeat(piece.count);
    })
    .join("");
}

/** A name on one line with the names of its hidden characters, for labels and announcements. */
export function visibleName(text: string): string {
  return visiblePieces(text.replaceAll(/\s+/g, " "))
    .map((piece) => (piece.kind === "text" ? piece.text : `⟨${codePointName(piece.character)}⟩`))
    .join("");
}
