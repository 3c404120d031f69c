/** The names of invisible characters that are met in practice, by code point. */
const NAMES: Readonly<Record<string, string>> = {
  "00A0": "no-break space",
  "00AD": "soft hyphen",
  "061C": "Arabic letter mark",
  "200B": "zero width space",
  "200C": "zero width non-joiner",
  "200D": "zero width joiner",
  "200E": "left-to-right mark",
  "200F": "right-to-left mark",
  "202A": "left-to-right embedding",
  "202B": "right-to-left embedding",
  "202C": "pop directional formatting",
  "202D": "left-to-right override",
  "202E": "right-to-left override",
  "202F": "narrow no-break space",
  "2060": "word joiner",
  "2066": "left-to-right isolate",
  "2067": "right-to-left isolate",
  "2068": "first strong isolate",
  "2069": "pop directional isolate",
  "3000": "ideographic space",
  "3164": "Hangul filler",
  FEFF: "zero width no-break space",
};

/** The code point of a character, such as `U+202E`. */
export function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** The code point of a character with its name, if it is known. */
export function characterName(character: string): string {
  const codePoint = codePointName(character);
  const name = NAMES[codePoint.slice(2)];
  return name === undefined ? codePoint : `${codePoint} (${name})`;
}
