import { numberText } from "../components/format-number.ts";
import { InvalidNumber, parseNumberText } from "../components/parse-number.ts";
import { visibleJson } from "../components/visible-text.ts";
import { isRecord } from "./approval-requests.ts";

/** The input control of a field. */
export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "json";

/** A form field for a property of the tool's schema. */
export interface EditField {
  readonly name: string;
  readonly kind: FieldKind;
  readonly required: boolean;
  readonly description?: string;
  readonly options: readonly string[];
  /** The initial text. */
  readonly text: string;
  /** The argument of the call; undefined if it was omitted. */
  readonly value: unknown;
}

/** The text of a field is invalid; the message says what to type. */
export class InvalidValue extends Error {
  override readonly name = "InvalidValue";
}

function typesOf(schema: Record<string, unknown>): readonly string[] {
  const union = [schema.anyOf, schema.oneOf].find(Array.isArray) ?? [];
  const own = Array.isArray(schema.type) ? schema.type : [schema.type];
  const types = [...own, ...union.filter(isRecord).flatMap(typesOf)];
  return types
    .filter((type) => typeof type === "string")
    .map((type) => type.toLowerCase())
    .filter((type) => type !== "null");
}

function kindOf(schema: Record<string, unknown>, value: unknown): FieldKind {
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === "string")) {
    return "choice";
  }
  const types = typesOf(schema);
  const [type] = types.length > 0 ? types : [Array.isArray(value) ? "array" : typeof value];
  if (types.length > 1) return "json";
  if (type === "string") return "text";
  return type === "number" || type === "integer" || type === "boolean" ? type : "json";
}

function toText(kind: FieldKind, value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "number") return numberText(value);
  return kind === "json" || typeof value === "object" ? visibleJson(value) : String(value);
}

/** An own property of an object; names such as `constructor` are not inherited. */
function ownProperty(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function optionsOf(kind: FieldKind, schema: Record<string, unknown>, text: string): string[] {
  if (kind === "boolean") return ["true", "false"];
  if (kind !== "choice" || !Array.isArray(schema.enum)) return [];
  const options = schema.enum.map(String);
  // A value that is not an option is shown as it is.
  return options.includes(text) || text === "" ? options : [text, ...options];
}

/** The fields of a call: the properties of its schema and its further arguments. */
export function editFields(schema: Record<string, unknown> | undefined, input: unknown) {
  const args = isRecord(input) ? input : {};
  const properties = isRecord(schema?.properties) ? schema.properties : {};
  const required = Array.isArray(schema?.required) ? schema.required : [];
  const names = new Set([...Object.keys(properties), ...Object.keys(args)]);
  return [...names].map((name): EditField => {
    const property = ownProperty(properties, name);
    const propertySchema = isRecord(property) ? property : {};
    const value = ownProperty(args, name);
    const kind = kindOf(propertySchema, value);
    const text = toText(kind, value);
    return {
      name,
      kind,
      required: required.includes(name),
      options: optionsOf(kind, propertySchema, text),
      text,
      value,
      ...(typeof propertySchema.description === "string" && {
        description: propertySchema.description,
      }),
    };
  });
}

/** Whether a value has the type of its field, so that its text stands for it. */
function hasKind({ kind, value }: EditField): boolean {
  if (kind === "boolean") return typeof value === "boolean";
  return (kind !== "number" && kind !== "integer") || typeof value === "number";
}

/** Parse the text of a field: its argument if the text is unchanged; undefined if it is omitted. */
export function parseField(field: EditField, text: string): unknown {
  if (text === field.text && field.value !== undefined && hasKind(field)) return field.value;
  const isOmitted = field.kind === "text" ? text === "" && field.text === "" : text.trim() === "";
  if (isOmitted) {
    if (!field.required) return undefined;
    if (field.kind !== "text") throw new InvalidValue("This field cannot be empty.");
  }
  switch (field.kind) {
    case "text":
    case "choice":
      return text;
    case "boolean":
      return text === "true";
    case "number":
    case "integer":
      return parseNumber(field, text);
    case "json":
      return parseJson(text);
  }
}

function parseNumber(field: EditField, text: string): number {
  try {
    const number = parseNumberText(text);
    if (field.kind === "integer" && !Number.isInteger(number)) {
      throw new InvalidValue("Type a whole number.");
    }
    return number;
  } catch (error) {
    throw error instanceof InvalidNumber ? new InvalidValue(error.message) : error;
  }
}

/** Reject a number that JSON.parse would round. */
function exactNumber(_key: string, value: unknown, context?: { readonly source?: string }) {
  if (typeof value !== "number" || context?.source === undefined) return value;
  const isRounded = /^-?\d+$/.test(context.source) && !Number.isSafeInteger(value);
  if (isRounded || !Number.isFinite(value)) {
    throw new InvalidValue(`The number ${context.source} has too many digits.`);
  }
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text, exactNumber);
  } catch (error) {
    if (error instanceof InvalidValue) throw error;
    throw new InvalidValue('Type JSON, such as [1, 2] or {"name": "value"}.');
  }
}
