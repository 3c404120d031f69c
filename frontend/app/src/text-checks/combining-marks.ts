/** Marks that strike the character through or enclose it. */
const OVERLAY = /[\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb\p{Me}]/u;
/** Accents, which are used in several scripts. */
const INHERITED = /\p{Script=Inherited}/u;
/** A dotted circle shows a mark on its own. */
const LETTER = /[\p{L}\u25cc]/u;
/** Scripts whose letters have few marks, all of them accents. */
const ALPHABETIC = /[\p{scx=Latin}\p{scx=Greek}\p{scx=Cyrillic}]/u;

const REPEATED = /(\p{M})\1/u;

/** More marks on one character obscure it (UTS 39, section 5.4). */
const MAX_MARKS = 4;
const MAX_ACCENTS = 2;

/**
 * Whether combining marks obscure the character that they follow.
 *
 * Marks that Unicode composes with the character, as in é, do not count.
 */
export function areObscuring(base: string, marks: string): boolean {
  if (marks === "") return false;
  const run = [...(base + marks).normalize("NFC")].slice([...base].length);
  if (run.length > MAX_MARKS || run.some((mark) => OVERLAY.test(mark))) return true;
  if (REPEATED.test(marks)) return true;
  if (!LETTER.test(base)) return run.some((mark) => INHERITED.test(mark));
  return ALPHABETIC.test(base) && run.length > MAX_ACCENTS;
}
