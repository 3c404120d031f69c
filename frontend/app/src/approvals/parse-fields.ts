import { numberText } from "../components/canonical-number.ts";
import { InvalidNumber, parseNumberText } from "../components/parse-canonical-number.ts";
import { isRecord } from "../is-record.ts";
import { isDate, isDateTime } from "./date-arguments.ts";
import { type EditField, isChanged, optionsOf, optionText } from "./edit-fields.ts";

/** The text of a field is invalid; the message says what to type. */
class InvalidValue extends Error {
  override readonly name = "InvalidValue";
}

/** The arguments of a form, or what is wrong in its fields, by id. */
export type ParsedFields =
  | { readonly values: Record<string, unknown> }
  | { readonly errors: ReadonlyMap<string, string> };

/** Parse the fields of a form; what was not changed keeps the value of the call exactly. */
export function parseFields(fields: readonly EditField[], input: unknown): ParsedFields {
  const errors = new Map<string, string>();
  const values = parseObject(fields, input, errors);
  return errors.size > 0 ? { errors } : { values };
}

function parseObject(
  fields: readonly EditField[],
  original: unknown,
  errors: Map<string, string>,
): Record<string, unknown> {
  const values = new Map<string, unknown>();
  for (const field of fields) {
    const value = parseField(field, errors);
    if (value !== undefined) values.set(field.name, value);
  }
  const known = isRecord(original) ? Object.keys(original) : [];
  const names = new Set([...known, ...values.keys()]);
  // Unlike an assignment, this makes `__proto__` a property like any other.
  return Object.fromEntries(
    [...names].filter((name) => values.has(name)).map((name) => [name, values.get(name)]),
  );
}

/** The value of a field; undefined if it is left out or invalid. */
function parseField(field: EditField, errors: Map<string, string>): unknown {
  const { content, original, id } = field;
  switch (content.kind) {
    case "omitted":
      return undefined;
    case "null":
      return null;
    case "object":
      return parseObject(content.fields, original, errors);
    case "list":
      return content.items.map((item) => parseField(item, errors));
    case "text":
      if (original !== undefined && !isChanged(field)) return original;
      try {
        return parseText(field, content.text);
      } catch (error) {
        if (!(error instanceof InvalidValue || error instanceof InvalidNumber)) throw error;
        errors.set(id, error.message);
        return undefined;
      }
  }
}

function parseText({ shape, original }: EditField, text: string): unknown {
  switch (shape.kind) {
    case "text":
      return text;
    case "boolean":
      return text === "true";
    case "number":
      return parseNumberText(text);
    case "integer": {
      const number = parseNumberText(text);
      if (!Number.isInteger(number)) throw new InvalidValue("Type a whole number.");
      return number;
    }
    case "choice": {
      const options = optionsOf(shape.options, original);
      const index = options.findIndex((option) => optionText(option, options) === text);
      if (index < 0) throw new InvalidValue("Choose one of the options.");
      return options[index];
    }
    case "date":
      if (!isDate(text)) throw new InvalidValue("Enter a date.");
      return text;
    case "date-time":
      if (!isDateTime(text)) {
        throw new InvalidValue("Type a date and time, such as 2026-03-02T10:00:00Z.");
      }
      return text;
    default:
      return parseJson(text);
  }
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** The digits of a number without the zeros around them, and the power of ten of the last one. */
function digitsOf(text: string): string {
  const [, sign, whole = "", decimals = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  const all = (whole + decimals).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  const power = Number(exponent) - decimals.length + all.length - digits.length;
  return digits === "" ? "0" : `${sign}${digits}e${power}`;
}

/** Reject JSON with a number that would be rounded. */
function checkNumbers(text: string): void {
  for (const [token] of text.matchAll(STRING_OR_NUMBER)) {
    if (token.startsWith('"')) continue;
    const number = Number(token);
    if (!Number.isFinite(number)) {
      throw new InvalidValue(`The number ${token} has too many digits.`);
    }
    const isUnsafe = /^-?\d+$/.test(token) && !Number.isSafeInteger(number);
    if (isUnsafe || digitsOf(token) !== digitsOf(String(number))) {
      const rounded = numberText(number);
      const consequence = rounded === token ? "" : `; it would be sent as ${rounded}`;
      throw new InvalidValue(`The number ${token} has too many digits${consequence}.`);
    }
  }
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidValue('Type JSON, such as [1, 2] or {"name": "value"}.');
  }
  checkNumbers(text);
  return value;
}
