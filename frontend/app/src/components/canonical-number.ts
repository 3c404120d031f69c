/**
 * The text of a number: decimal digits, a point before decimals, neither separators nor
 * exponents.
 */
export function numberText(value: number): string {
  if (Object.is(value, -0)) return "-0";
  const text = String(value);
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (match === null) return text;
  const [, sign = "", first = "", rest = "", exponent = "0"] = match;
  const digits = first + rest;
  const point = 1 + Number(exponent);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return sign + digits.padEnd(point, "0");
}

const STRING_OR_EXPONENT = /"(?:[^"\\]|\\.)*"|-?[0-9.]+e[+-][0-9]+/g;

/** Indented JSON with numbers in the same form. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(STRING_OR_EXPONENT, (token) =>
    token.startsWith('"') ? token : numberText(Number(token)),
  );
}

/** The digits before the point in groups of three, and the rest. */
export function digitGroups(text: string): string[] {
  const [, whole = text, rest = ""] = /^(-?\d+)(\.\d+)?$/.exec(text) ?? [];
  const groups =
    whole.replace("-", "").length > 4 ? whole.split(/(?<=\d)(?=(?:\d{3})+$)/) : [whole];
  return [...groups.slice(0, -1), `${groups.at(-1)}${rest}`];
}

/** An integer with thousands separators; `Intl.NumberFormat` takes 40 ms on its first use. */
export function formatCount(number: number): string {
  return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
