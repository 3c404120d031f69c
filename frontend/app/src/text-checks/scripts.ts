/** The scripts that are named; a letter of any other script belongs to `another script`. */
const SCRIPTS =
  "Latin Cyrillic Greek Armenian Georgian Hebrew Arabic Syriac Thaana Han Hiragana Katakana Hangul Bopomofo Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Khmer Myanmar Tibetan Mongolian Ethiopic Cherokee Coptic Lisu Gothic Glagolitic Deseret Runic Tifinagh Nko Adlam Canadian_Aboriginal Osage Vai".split(
    " ",
  );

export const LATIN = "Latin";
export const OTHER_SCRIPT = "another script";

const ANY_SCRIPT = /[\p{scx=Common}\p{scx=Inherited}]/u;

/** The scripts that are written together (UTS 39, section 5.1). */
const JOINT: Readonly<Record<string, readonly string[]>> = {
  Han: ["Japanese", "Korean", "Chinese"],
  Hiragana: ["Japanese"],
  Katakana: ["Japanese"],
  Hangul: ["Korean"],
  Bopomofo: ["Chinese"],
};
const EAST_ASIAN: ReadonlySet<string> = new Set(["Japanese", "Korean", "Chinese"]);

let patterns: readonly (readonly [script: string, pattern: RegExp])[] | undefined;
const cache = new Map<string, readonly string[]>();

function findScripts(character: string): readonly string[] {
  if (ANY_SCRIPT.test(character)) return [];
  patterns ??= SCRIPTS.map((script) => [script, new RegExp(`\\p{scx=${script}}`, "u")]);
  const found = patterns.filter(([, pattern]) => pattern.test(character)).map(([script]) => script);
  return found.length > 0 ? found : [OTHER_SCRIPT];
}

/** The scripts that a character is used in; none if it is used in every script. */
export function scriptsOf(character: string): readonly string[] {
  let scripts = cache.get(character);
  if (scripts === undefined) {
    scripts = findScripts(character);
    cache.set(character, scripts);
  }
  return scripts;
}

function areInCommon(sets: readonly (readonly string[])[]): boolean {
  const [first = [], ...others] = sets;
  return first.some((script) => others.every((other) => other.includes(script)));
}

/**
 * Whether letters come from scripts that are not written together.
 *
 * Latin letters in Chinese, Japanese or Korean text are no mixture, as in the level "highly
 * restrictive" of UTS 39.
 */
export function isMixed(letters: Iterable<string>): boolean {
  const sets = new Map<string, readonly string[]>();
  for (const letter of letters) {
    const scripts = scriptsOf(letter);
    if (scripts.length === 0) continue;
    const joint = scripts.flatMap((script) => [script, ...(JOINT[script] ?? [])]);
    sets.set(scripts.join(), joint);
  }
  const all = [...sets.values()];
  if (all.length < 2 || areInCommon(all)) return false;
  const others = all.filter((scripts) => !scripts.includes(LATIN));
  return !(
    areInCommon(others) && others.every((scripts) => scripts.some((one) => EAST_ASIAN.has(one)))
  );
}
