import { isRecord } from "../is-record.ts";
import { isDate, isDateTime } from "./date-arguments.ts";

/** A JSON schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** The form of a value, which decides its control. */
export type Shape =
  | { readonly kind: "text" | "date" | "date-time" | "number" | "integer" | "boolean" | "json" }
  | { readonly kind: "choice"; readonly options: readonly unknown[] }
  | { readonly kind: "list"; readonly item: Schema }
  | { readonly kind: "object"; readonly schema: Schema };

/** Deeper values are edited as JSON. */
const MAX_DEPTH = 6;
/** Longer lists are edited as JSON, as they are shown. */
const MAX_ITEMS = 24;
/** References and unions that refer to each other end here. */
const MAX_REFERENCES = 16;

const JSON_SHAPE: Shape = { kind: "json" };

/** An own property of an object; names such as `constructor` are not inherited. */
export function ownProperty(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function referencedSchema(reference: string, root: Schema): Schema {
  let found: unknown = root;
  for (const step of reference.replace(/^#\/?/, "").split("/")) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    found = isRecord(found) ? ownProperty(found, name) : undefined;
  }
  return isRecord(found) ? found : {};
}

/** The schema with what its `$ref` refers to. */
function withoutReference(schema: Schema, root: Schema): Schema {
  let resolved = schema;
  for (let count = 0; typeof resolved.$ref === "string" && count < MAX_REFERENCES; count += 1) {
    const { $ref, ...siblings } = resolved;
    resolved = { ...referencedSchema(String($ref), root), ...siblings };
  }
  return resolved;
}

/** The alternatives of a schema, and whether null is one of them. */
interface Alternatives {
  readonly schemas: readonly Schema[];
  readonly isNullable: boolean;
}

const UNKNOWN: Alternatives = { schemas: [], isNullable: false };

function alternativesOf(schema: Schema, root: Schema, depth = 0): Alternatives {
  if (depth > MAX_REFERENCES) return UNKNOWN;
  const resolved = withoutReference(schema, root);
  const { anyOf, oneOf, allOf, ...own } = resolved;
  const union = [anyOf, oneOf, allOf].find(Array.isArray);
  if (union === undefined) return alternativesOfType(resolved);
  // Several schemas that hold at once are none of the shapes.
  if (union === allOf && union.length > 1) return UNKNOWN;
  const inner = union
    .filter(isRecord)
    .map((each) => alternativesOf({ ...own, ...withoutReference(each, root) }, root, depth + 1));
  return {
    schemas: inner.flatMap(({ schemas }) => schemas),
    isNullable: inner.some(({ isNullable }) => isNullable) || resolved.nullable === true,
  };
}

/** `type` may be a list, and is in capital letters in a schema of the Gemini API. */
function alternativesOfType(schema: Schema): Alternatives {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type])
    .filter((type) => typeof type === "string")
    .map((type) => type.toLowerCase());
  const schemas = types.filter((type) => type !== "null").map((type) => ({ ...schema, type }));
  return {
    schemas: types.length === 0 ? [schema] : schemas,
    isNullable: types.includes("null") || schema.nullable === true,
  };
}

function isScalar(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function typeOfValue(value: unknown): unknown {
  if (Array.isArray(value)) return "array";
  return isRecord(value) ? "object" : typeof value;
}

/** The item schema of a list without one: the type that its items have in common. */
function itemSchemaOf(items: readonly unknown[]): Schema | undefined {
  const [type, ...others] = new Set(items.map((item) => typeof item));
  return type !== undefined && others.length === 0 && isScalar(items[0]) ? { type } : undefined;
}

function listShape(schema: Schema, value: unknown): Shape {
  const declared = isRecord(schema.items) && Object.keys(schema.items).length > 0;
  const items = Array.isArray(value) ? value : [];
  const item = declared ? (schema.items as Schema) : itemSchemaOf(items);
  if (item === undefined || items.length > MAX_ITEMS) return JSON_SHAPE;
  return { kind: "list", item };
}

function textKind(format: unknown, value: unknown): "text" | "date" | "date-time" {
  if (format !== "date" && format !== "date-time") return "text";
  // A date field cannot show another text, such as "tomorrow".
  const isShown = value === undefined || (format === "date" ? isDate(value) : isDateTime(value));
  return isShown ? format : "text";
}

function shapeOfType(schema: Schema, value: unknown, depth: number): Shape {
  const type = schema.type ?? (value === undefined ? undefined : typeOfValue(value));
  switch (type) {
    case "string":
      return { kind: textKind(schema.format, value) };
    case "number":
    case "integer":
    case "boolean":
      return { kind: type };
    case "array":
      return depth < MAX_DEPTH ? listShape(schema, value) : JSON_SHAPE;
    case "object":
      // The names of other properties cannot be listed.
      return depth < MAX_DEPTH && isRecord(schema.properties)
        ? { kind: "object", schema }
        : JSON_SHAPE;
    default:
      return JSON_SHAPE;
  }
}

function shapeOfOne(schema: Schema, value: unknown, depth: number): Shape {
  const options = Array.isArray(schema.enum) ? schema.enum : undefined;
  const all = options ?? (Object.hasOwn(schema, "const") ? [schema.const] : []);
  const scalars = all.filter((option) => option !== null);
  if (scalars.length > 0 && scalars.every(isScalar)) return { kind: "choice", options: scalars };
  return shapeOfType(schema, value, depth);
}

/** Whether a value has the type of a shape, so that its control shows it exactly. */
function hasShape(value: unknown, { kind }: Shape): boolean {
  switch (kind) {
    case "text":
    case "date":
    case "date-time":
      return typeof value === "string";
    case "number":
    case "integer":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return isScalar(value);
    case "list":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    case "json":
      return true;
  }
}

/** The shape that several have in common. */
function commonShape(shapes: readonly Shape[]): Shape {
  const [first = JSON_SHAPE, ...others] = shapes;
  if (others.length === 0) return first;
  const areAll = (...kinds: string[]) => shapes.every(({ kind }) => kinds.includes(kind));
  if (areAll("number", "integer")) return { kind: "number" };
  return areAll("text", "date", "date-time") ? { kind: "text" } : JSON_SHAPE;
}

/** What a schema says of a value. */
export interface ValueShape {
  readonly shape: Shape;
  readonly isNullable: boolean;
}

/**
 * The shape in which a value is edited; `json` for any other one.
 *
 * `value` is undefined if there is none yet. Of a union, the alternative is chosen that the value
 * has, so that an edit does not change its type.
 */
export function shapeOf(schema: Schema, root: Schema, value: unknown, depth: number): ValueShape {
  const { schemas, isNullable } = alternativesOf(schema, root);
  if (value === undefined || value === null) {
    const shapes = schemas.map((one) => shapeOfOne(one, undefined, depth));
    return { shape: commonShape(shapes), isNullable: isNullable || value === null };
  }
  const shapes = schemas.map((one) => shapeOfOne(one, value, depth));
  return { shape: commonShape(shapes.filter((shape) => hasShape(value, shape))), isNullable };
}

/** The description of a schema, which may stand beside a `$ref`. */
export function descriptionOf(schema: Schema, root: Schema): string | undefined {
  const { description } = withoutReference(schema, root);
  return typeof description === "string" ? description : undefined;
}
