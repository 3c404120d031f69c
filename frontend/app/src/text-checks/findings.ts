import { characterName, codePointName } from "./character-names.ts";
import { mayBeHidden, visiblePieces } from "./hidden-characters.ts";
import { lookAlike } from "./look-alikes.ts";
import { isMixed, LATIN, scriptsOf } from "./scripts.ts";

/** The number of characters that a finding lists. */
const MAX_LISTED = 4;

const PLAIN = /^[\t\n -~]*$/;
const WORD = /[\p{L}\p{M}\p{Nd}]+/gu;
const LETTER = /\p{L}/u;
const OTHER_DIGIT = /(?![0-9])\p{Nd}/u;

function list(items: Iterable<string>): string {
  const all = [...new Set(items)];
  const more = all.length - MAX_LISTED;
  return all.slice(0, MAX_LISTED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function and(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function scriptName(letter: string): string {
  return (scriptsOf(letter)[0] ?? "").replaceAll("_", " ");
}

/** A letter of another script with its code point, such as `Cyrillic ‘а’ (U+0430)`. */
function foreignLetter(letter: string): string {
  return `${scriptName(letter)} ‘${letter}’ (${codePointName(letter)})`;
}

function hiddenFindings(text: string): string[] {
  const names = { bidi: new Set<string>(), invisible: new Set<string>(), mark: new Set<string>() };
  for (const piece of visiblePieces(text)) {
    if (piece.kind !== "text") names[piece.kind].add(characterName(piece.character));
  }
  const findings: string[] = [];
  if (names.bidi.size > 0) {
    findings.push(`Contains ${list(names.bidi)}, which changes the order of the displayed text.`);
  }
  if (names.invisible.size > 0) {
    findings.push(`Contains invisible characters: ${list(names.invisible)}.`);
  }
  if (names.mark.size > 0) {
    findings.push(`Contains combining marks that obscure a character: ${list(names.mark)}.`);
  }
  return findings;
}

/** Letters of another script within a word; the script of its first Latin letter is its own. */
function mixedWordFinding(words: readonly string[]): string | undefined {
  const letters = words
    .filter((word) => isMixed(word))
    .flatMap((word) => {
      const named = [...word].filter((letter) => scriptsOf(letter).length > 0);
      const isLatin = named.some((letter) => scriptsOf(letter).includes(LATIN));
      const own = isLatin ? LATIN : scriptName(named[0] ?? "");
      return named
        .filter((letter) => !scriptsOf(letter).includes(own))
        .map((letter) => ({ own, letter }));
    });
  const [first] = letters;
  if (first === undefined) return undefined;
  const foreign = letters.map(({ letter }) => foreignLetter(letter));
  return `Contains ${list(foreign)} among ${first.own.replaceAll("_", " ")} letters.`;
}

/** A text whose letters of another script all look like Latin ones. */
function disguiseFinding(text: string, words: readonly string[]): string | undefined {
  const isForeign = (letter: string) =>
    LETTER.test(letter) && scriptsOf(letter).length > 0 && !scriptsOf(letter).includes(LATIN);
  const foreign = words.filter((word) => [...word].some(isForeign));
  const reading = (word: string) =>
    [...word].map((letter) => lookAlike(letter, text) ?? (isForeign(letter) ? "" : letter));
  const isDisguised = (word: string) => reading(word).every((letter) => letter !== "");
  if (foreign.length === 0 || !foreign.every(isDisguised)) return undefined;
  const scripts = [...new Set(foreign.flatMap((word) => [...word].filter(isForeign)))];
  const names = [...new Set(scripts.map(scriptName))];
  const readings = list(foreign.map((word) => `“${reading(word).join("")}”`));
  return `Looks like ${readings}, but is written with ${and(names)} letters.`;
}

/** Variants of Latin letters, and characters that look like the separators of an address. */
function lookAlikeFinding(text: string, characters: readonly string[]): string | undefined {
  const found = characters.flatMap((character) => {
    const scripts = scriptsOf(character);
    const plain = lookAlike(character, text);
    // A letter of another script is found by the checks of scripts.
    if (plain === undefined || (scripts.length > 0 && !scripts.includes(LATIN))) return [];
    return [`‘${character}’ (${codePointName(character)}) looks like ‘${plain}’`];
  });
  return found.length === 0 ? undefined : `${list(found)}.`;
}

function mixedTextFinding(characters: readonly string[]): string | undefined {
  const letters = characters.filter((character) => LETTER.test(character));
  if (!isMixed(letters)) return undefined;
  const names = letters.map(scriptName).filter((name) => name !== "");
  return `Contains letters of several scripts: ${and([...new Set(names)])}.`;
}

/**
 * Sentences about characters of a text that can mislead a reader: invisible and bidirectional ones,
 * combining marks, mixed scripts (UTS 39), and characters that look like others.
 */
export function textFindings(text: string): string[] {
  if (PLAIN.test(text)) return [];
  const words = [...new Set(text.match(WORD))];
  const characters = [...new Set(text)];
  const scripts =
    mixedWordFinding(words) ?? disguiseFinding(text, words) ?? mixedTextFinding(characters);
  const hasMixedDigits = OTHER_DIGIT.test(text) && /[0-9]/.test(text);
  return [
    ...(characters.some(mayBeHidden) ? hiddenFindings(text) : []),
    scripts,
    lookAlikeFinding(text, characters),
    hasMixedDigits ? "Contains digits of several scripts." : undefined,
  ].filter((finding) => finding !== undefined);
}

/** Where a text is in a value, and what is found in it. */
export interface ValueFinding {
  /** Such as `items[0].name`; empty for the value itself. */
  readonly path: string;
  readonly finding: string;
}

function pathBelow(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/** The findings in all texts and keys of a JSON value. */
export function valueFindings(value: unknown, path = ""): ValueFinding[] {
  if (typeof value === "string") {
    return textFindings(value).map((finding) => ({ path, finding }));
  }
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => valueFindings(item, `${path}[${index}]`));
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    ...textFindings(key).map((finding) => ({ path: pathBelow(path, key), finding })),
    ...valueFindings(item, pathBelow(path, key)),
  ]);
}
