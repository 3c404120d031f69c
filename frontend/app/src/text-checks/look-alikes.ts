/**
 * Letters that look like a Latin letter: the entries of Unicode's confusables.txt (UTS 39) for
 * letters of Latin, Cyrillic, Greek, Armenian, Cherokee, Coptic and Lisu. The Turkish ı is left out,
 * because it is common in text.
 */
const LETTERS: Readonly<Record<string, string>> = {
  A: "ΑАᎪꓮ",
  B: "ΒВᏴꓐꞴ",
  C: "ϹСᏟⲤꓚ",
  D: "Ꭰꓓ",
  E: "ΕЕᎬꓰ",
  F: "ϜꓝꞘ",
  G: "ԌᏀᏳꓖ",
  H: "ΗНᎻⲎꓧ",
  J: "ͿЈᎫꓙꞲ",
  K: "ΚКᏦⲔꓗ",
  L: "ᏞⳐꓡ",
  M: "ΜϺМᎷⲘꓟ",
  N: "ΝⲚꓠ",
  O: "ΟОՕⲞꓳ",
  P: "ΡРᏢⲢꓑ",
  R: "ƦᎡᏒꓣ",
  S: "ЅՏᏕᏚꓢ",
  T: "ΤТᎢⲦꓔ",
  U: "Սꓴ",
  V: "ѴᏙꓦ",
  W: "ԜᎳᏔꓪ",
  X: "ΧХⲬꓫꞳ",
  Y: "ΥϒУҮᎩᎽⲨꓬ",
  Z: "ΖᏃꓜ",
  a: "ɑαа",
  b: "ƄЬᏏ",
  c: "ϲсᴄⲥꮯ",
  d: "ԁᏧꓒ",
  e: "еҽꬲ",
  f: "քẝꞙꬵ",
  g: "ƍɡցᶃ",
  h: "һհᏂ",
  i: "ɩɪͺιіӏᎥιꙇꭵ",
  j: "ϳј",
  l: "ƖǀΙІӀⲒꓲ",
  n: "ոռ",
  o: "οσоօᴏᴑⲟꬽ",
  p: "ρϱрⲣ",
  q: "ԛգզ",
  r: "гᴦⲅꭇꭈꮁ",
  s: "ƽѕꜱꮪ",
  u: "ʋυսᴜꞟꭎꭒ",
  v: "νѵᴠꮩ",
  w: "ɯѡԝաᴡꮃ",
  x: "х",
  y: "ɣʏγуүᶌỿꭚ",
  z: "ᴢꮓ",
  // Marks that separate the parts of an address.
  "/": "∕⁄╱⟋⧸",
  ".": "․꘎ꓸ",
  ":": "։᛬⁚˸꞉∶ːꓽ",
};

const LATIN_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(LETTERS).flatMap(([latin, others]) =>
    [...others].map((other) => [other, latin] as const),
  ),
);

/** East Asian text uses full-width forms of Latin letters and digits. */
const EAST_ASIAN = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}]/u;
const FULL_WIDTH = /[\uff01-\uff5e]/u;
/** Superscripts, subscripts and circled characters cannot be mistaken for the plain character. */
const STYLED = /[\u2100-\u214f\u2160-\u217f\uff01-\uff5e\u{1d400}-\u{1d7ff}\u{1fbf0}-\u{1fbf9}]/u;

/**
 * The ASCII character that another character of a text looks like, if there is one: a letter of
 * another script, or a variant of the same letter, such as 𝐚 or ａ.
 */
export function lookAlike(character: string, text: string): string | undefined {
  const latin = LATIN_OF.get(character);
  if (latin !== undefined || !STYLED.test(character)) return latin;
  if (FULL_WIDTH.test(character) && EAST_ASIAN.test(text)) return undefined;
  const plain = character.normalize("NFKC");
  return /^[!-~]$/.test(plain) ? plain : undefined;
}
