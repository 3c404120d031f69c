/** A piece of a text: letters as they are, or a run of one character that nobody would see. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "hidden"; readonly name: string; readonly count: number };

/**
 * What a reader would not see, or what would change the order of what is read: control and format
 * characters (bidi, zero-width, tags), unusual spaces, fillers, variation selectors, and U+2800.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/u;

const SEEN: ReadonlySet<string> = new Set([" ", "\n", "\t"]);

/** A joiner or a variation selector inside an emoji: there it is seen, as the emoji itself. */
const EMOJI =
  /\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f|\u200d\p{Extended_Pictographic})*/uy;

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function emojiAt(text: string, index: number): string {
  EMOJI.lastIndex = index;
  return EMOJI.exec(text)?.[0] ?? "";
}

/** Split a text so that hidden characters can be shown by name; line ends and tabs stay text. */
export function visiblePieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let plain = "";
  const close = () => {
    if (plain !== "") pieces.push({ kind: "text", text: plain });
    plain = "";
  };
  for (let index = 0; index < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(index) ?? 0);
    const seen = emojiAt(text, index) || (isSeen(character) ? character : "");
    index += (seen || character).length;
    if (seen !== "") {
      plain += seen;
      continue;
    }
    close();
    const name = nameOf(character);
    const last = pieces.at(-1);
    if (last?.kind === "hidden" && last.name === name) {
      pieces[pieces.length - 1] = { ...last, count: last.count + 1 };
    } else pieces.push({ kind: "hidden", name, count: 1 });
  }
  close();
  return pieces;
}

function isSeen(character: string): boolean {
  return SEEN.has(character) || !HIDDEN.test(character);
}

/** The names of what cannot be seen in a text, each once. */
export function hiddenIn(text: string): string[] {
  const names = visiblePieces(text).flatMap((piece) =>
    piece.kind === "hidden" ? [piece.name] : [],
  );
  return [...new Set(names)];
}

/** JSON in which what cannot be seen is written as an escape; it means the same. */
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

/** A name on one line, with what is hidden in it spelled out; for labels and announcements. */
export function visibleName(text: string): string {
  return visiblePieces(text.replaceAll(/\s+/g, " "))
    .map((piece) => (piece.kind === "text" ? piece.text : `⟨${piece.name}⟩`))
    .join("");
}
