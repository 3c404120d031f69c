import { numberText } from "./canonical-number.ts";

/**
 * The one form in which numbers are shown and typed: decimal digits, a point before decimals,
 * neither separators nor exponents.
 */
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;

/** A text is not a number in the one form; the message says what to type. */
export class InvalidNumber extends Error {
  override readonly name = "InvalidNumber";
}

const SEPARATOR = "[,.'’_ \\u00a0\\u202f]";
const GROUPED = new RegExp(`^(-?[1-9]\\d{0,2})(?:(${SEPARATOR})\\d{3})(?:\\2\\d{3})*$`);
const GROUPED_DECIMAL = new RegExp(
  `^-?[1-9]\\d{0,2}(?:(${SEPARATOR})\\d{3})(?:\\1\\d{3})*(?!\\1)[.,]\\d+$`,
);
const DECIMAL = /^-?\d+[.,]\d+$/;

/** The numbers that a text can stand for, in the one form. */
function readings(text: string): string[] {
  if (GROUPED_DECIMAL.test(text)) {
    const point = Math.max(text.lastIndexOf("."), text.lastIndexOf(","));
    return [`${text.slice(0, point).replaceAll(/[^-\d]/g, "")}.${text.slice(point + 1)}`];
  }
  const found: string[] = [];
  if (GROUPED.test(text)) found.push(text.replaceAll(/[^-\d]/g, ""));
  if (DECIMAL.test(text)) {
    const decimal = text.replace(",", ".").replace(/(?<=\.\d+)0+$/, "");
    // With a fourth decimal it cannot be read as grouped.
    found.push(GROUPED.test(decimal) ? `${decimal}0` : decimal);
  }
  return found.filter((reading) => NUMBER.test(reading));
}

/**
 * Parse a number in the one form.
 *
 * Throws `InvalidNumber` for any other text, with the numbers that it can stand for, and for a
 * number that would be rounded.
 */
export function parseNumberText(input: string): number {
  const text = input.trim();
  const found = readings(text);
  if (found.length > 1) {
    throw new InvalidNumber(`“${text}” can be ${found.join(" or ")}. Type one of them.`);
  }
  if (!NUMBER.test(text)) {
    throw new InvalidNumber(
      found.length === 1
        ? `Type ${found[0]}.`
        : "Type a number in digits, such as 1500 or 12.5, without separators.",
    );
  }
  const number = Number(text);
  const rounded = numberText(number);
  if (rounded !== text.replace(/\.?0+$/, (zeros) => (text.includes(".") ? "" : zeros))) {
    throw new InvalidNumber(`This number has too many digits; it would be sent as ${rounded}.`);
  }
  return number;
}
