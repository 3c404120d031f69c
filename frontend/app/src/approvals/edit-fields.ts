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
  return kind === "json" || typeof value === "object" ? visibleJson(value) : String(value);
}

/** The fields of a call: the properties of its schema and its further arguments. */
export function editFields(schema: Record<string, unknown> | undefined, input: unknown) {
  const args = isRecord(input) ? input : {};
  const properties = isRecord(schema?.properties) ? schema.properties : {};
  const required = Array.isArray(schema?.required) ? schema.required : [];
  const names = new Set([...Object.keys(properties), ...Object.keys(args)]);
  return [...names].map((name): EditField => {
    const property = properties[name];
    const propertySchema = isRecord(property) ? property : {};
    const kind = kindOf(propertySchema, args[name]);
    return {
      name,
      kind,
      required: required.includes(name),
      options:
        kind === "choice" && Array.isArray(propertySchema.enum)
          ? propertySchema.enum.map(String)
          : [],
      text: toText(kind, args[name]),
      ...(typeof propertySchema.description === "string" && {
        description: propertySchema.description,
      }),
    };
  });
}

/** Parse the text of a field; undefined for an omitted optional field. */
export function parseField(field: EditField, text: string): unknown {
  const isEmpty = text.trim() === "";
  switch (field.kind) {
    case "text":
    case "choice":
      return isEmpty && !field.required && field.text === "" ? undefined : text;
    case "boolean":
      return isEmpty ? omitted(field) : text === "true";
    case "number":
    case "integer":
      return isEmpty ? omitted(field) : parseNumber(field, text);
    case "json":
      return isEmpty ? omitted(field) : parseJson(text);
  }
}

function omitted(field: EditField): undefined {
  if (field.required) throw new InvalidValue("This field cannot be empty.");
  return undefined;
}

function parseNumber(field: EditField, text: string): number {
  const number = Number(text.trim().replace(",", "."));
  if (!Number.isFinite(number)) throw new InvalidValue("Type a number.");
  if (field.kind === "integer" && !Number.isInteger(number)) {
    throw new InvalidValue("Type a whole number.");
  }
  return number;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidValue('Type JSON, such as [1, 2] or {"name": "value"}.');
  }
}
