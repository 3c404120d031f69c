import { visibleJson } from "../shown/visible-text.ts";
import { isRecord } from "./request.ts";

/** How a person types a value: as itself, as one of a few, or as JSON. */
export type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "json";

/** A field of the form, from a property of the tool's schema. */
export interface EditField {
  readonly name: string;
  readonly kind: Kind;
  readonly required: boolean;
  readonly description?: string;
  readonly choices: readonly string[];
  /** What stands in the field at first. */
  readonly text: string;
}

/** What was typed does not fit; the message says what to type. */
export class WrongValue extends Error {
  override readonly name = "WrongValue";
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

function kindOf(schema: Record<string, unknown>, value: unknown): Kind {
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === "string")) {
    return "choice";
  }
  const types = typesOf(schema);
  const [type] = types.length > 0 ? types : [Array.isArray(value) ? "array" : typeof value];
  if (types.length > 1) return "json";
  if (type === "string") return "text";
  return type === "number" || type === "integer" || type === "boolean" ? type : "json";
}

function written(kind: Kind, value: unknown): string {
  if (value === undefined) return "";
  return kind === "json" || typeof value === "object" ? visibleJson(value) : String(value);
}

/** The fields of a call: what its schema names, and what its arguments hold besides. */
export function editFields(schema: Record<string, unknown> | undefined, input: unknown) {
  const given = isRecord(input) ? input : {};
  const properties = isRecord(schema?.properties) ? schema.properties : {};
  const required = Array.isArray(schema?.required) ? schema.required : [];
  const names = new Set([...Object.keys(properties), ...Object.keys(given)]);
  return [...names].map((name): EditField => {
    const property = properties[name];
    const own = isRecord(property) ? property : {};
    const kind = kindOf(own, given[name]);
    return {
      name,
      kind,
      required: required.includes(name),
      choices: kind === "choice" && Array.isArray(own.enum) ? own.enum.map(String) : [],
      text: written(kind, given[name]),
      ...(typeof own.description === "string" && { description: own.description }),
    };
  });
}

/** The value that a text stands for; undefined for a field that is left out. */
export function readField(field: EditField, text: string): unknown {
  const isEmpty = text.trim() === "";
  switch (field.kind) {
    case "text":
    case "choice":
      return isEmpty && !field.required && field.text === "" ? undefined : text;
    case "boolean":
      return isEmpty ? missing(field) : text === "true";
    case "number":
    case "integer":
      return isEmpty ? missing(field) : readNumber(field, text);
    case "json":
      return isEmpty ? missing(field) : readJson(text);
  }
}

function missing(field: EditField): undefined {
  if (field.required) throw new WrongValue("This field cannot be empty.");
  return undefined;
}

function readNumber(field: EditField, text: string): number {
  const number = Number(text.trim().replace(",", "."));
  if (!Number.isFinite(number)) throw new WrongValue("Type a number.");
  if (field.kind === "integer" && !Number.isInteger(number)) {
    throw new WrongValue("Type a whole number.");
  }
  return number;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new WrongValue('Type JSON, such as [1, 2] or {"name": "value"}.');
  }
}
