/** A piece of a text: visible text, or a run of one invisible character. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "invisible"; readonly name: string; readonly count: number };

/**
 * Characters that are invisible or change the reading order: control and format characters (bidi,
 * zero-width, tags), unusual spaces, fillers, variation selectors, and U+2800.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/u;

const ALLOWED: ReadonlySet<string> = new Set([" ", "\n", "\t"]);

/** An emoji sequence: joiners and variation selectors are visible as part of it. */
const EMOJI =
  /\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f|\u200d\p{Extended_Pictographic})*/uy;

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function emojiAt(text: string, index: number): string {
  EMOJI.lastIndex = index;
  return EMOJI.exec(text)?.[0] ?? "";
}

/** Split a text so that invisible characters can be shown by name; line breaks and tabs are text. */
export function visiblePieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let plain = "";
  const close = () => {
    if (plain !== "") pieces.push({ kind: "text", text: plain });
    plain = "";
  };
  for (let index = 0; index < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(index) ?? 0);
    const visible = emojiAt(text, index) || (isVisible(character) ? character : "");
    index += (visible || character).length;
    if (visible !== "") {
      plain += visible;
      continue;
    }
    close();
    const name = nameOf(character);
    const last = pieces.at(-1);
    if (last?.kind === "invisible" && last.name === name) {
      pieces[pieces.length - 1] = { ...last, count: last.count + 1 };
    } else pieces.push({ kind: "invisible", name, count: 1 });
  }
  close();
  return pieces;
}

function isVisible(character: string): boolean {
  return ALLOWED.has(character) || !INVISIBLE.test(character);
}

/** The names of the invisible characters in a text, without duplicates. */
export function invisibleCharacters(text: string): string[] {
  const names = visiblePieces(text).flatMap((piece) =>
    piece.kind === "invisible" ? [piece.name] : [],
  );
  return [...new Set(names)];
}

/** Equivalent JSON in which invisible characters are escaped. */
export function visibleJson(value: unknown): string {
  return visiblePieces(JSON.stringify(value, null, 2))
    .map((piece) => {
      if (piece.kind === "text") return piece.text;
      const units = String.fromCodePoint(Number.parseInt(piece.name.slice(2), 16)).split("");
      const escaped = units.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
      return escaped.join("").repeat(piece.count);
    })
    .join("");
}

/** A name on one line with the names of its invisible characters, for labels and announcements. */
export function visibleName(text: string): string {
  return visiblePieces(text.replaceAll(/\s+/g, " "))
    .map((piece) => (piece.kind === "text" ? piece.text : `⟨${piece.name}⟩`))
    .join("");
}

/** An integer with thousands separators; `Intl.NumberFormat` takes 40 ms on its first use. */
export function formatCount(number: number): string {
  return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
