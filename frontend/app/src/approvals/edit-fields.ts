import { numberText } from "../components/canonical-number.ts";
import { isRecord } from "../is-record.ts";
import { visibleJson } from "../text-checks/hidden-characters.ts";
import { ownProperty, type Schema, type Shape, shapeOf } from "./edit-shapes.ts";

/** What a field holds: a value as text, as its parts, null, or none at all. */
export type Content =
  | { readonly kind: "omitted" }
  | { readonly kind: "null" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly EditField[]; readonly nextKey: number }
  | { readonly kind: "object"; readonly fields: readonly EditField[] };

/** Where a field is in a form, and what its schema says. */
interface FieldPlace {
  /** Unique in a form; that of an item does not change with its position. */
  readonly id: string;
  /** The names of the properties that lead to it, such as `to.city`. */
  readonly path: string;
  /** The name of the property; empty for an item of a list. */
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly depth: number;
}

/** A form field for an argument, a property of an object, or an item of a list. */
export interface EditField extends FieldPlace {
  readonly shape: Shape;
  readonly isNullable: boolean;
  /** The value of the call; undefined if it was left out or is new. */
  readonly original: unknown;
  readonly content: Content;
}

/** What the fields of a form share. */
export interface EditContext {
  /** The schema of all arguments, in which references are resolved. */
  readonly root: Schema;
  /** The values that the tool uses for omitted arguments, by path. */
  readonly defaults: Readonly<Record<string, unknown>>;
}

/** The text of a choice in its control. */
export function optionText(option: unknown, options: readonly unknown[]): string {
  const areTexts = options.every((one) => typeof one === "string");
  return areTexts ? String(option) : visibleJson(option);
}

/** The text of a value in the control of its shape. */
export function textOf(shape: Shape, value: unknown): string {
  if (value === undefined) return shape.kind === "boolean" ? "false" : "";
  switch (shape.kind) {
    case "choice":
      return optionText(value, optionsOf(shape.options, value));
    case "json":
      return visibleJson(value);
    default:
      return typeof value === "number" ? numberText(value) : String(value);
  }
}

/** The options of a choice; a value that is not one of them is offered as it is. */
export function optionsOf(options: readonly unknown[], value: unknown): readonly unknown[] {
  const isMissing = value !== undefined && value !== null && !options.includes(value);
  return isMissing ? [value, ...options] : options;
}

function propertyFields(
  context: EditContext,
  { id, path, schema, depth }: Pick<FieldPlace, "id" | "path" | "schema" | "depth">,
  value: unknown,
): readonly EditField[] {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const object = isRecord(value) ? value : {};
  const names = new Set([...Object.keys(properties), ...Object.keys(object)]);
  return [...names].map((name) => {
    const property = ownProperty(properties, name);
    const place = {
      id: `${id}/${encodeURIComponent(name)}`,
      path: path === "" ? name : `${path}.${name}`,
      name,
      schema: isRecord(property) ? property : {},
      isRequired: required.includes(name),
      depth: depth + 1,
    };
    return createField(context, place, ownProperty(object, name));
  });
}

function createItem(
  context: EditContext,
  list: FieldPlace,
  item: Schema,
  key: number,
  value: unknown,
) {
  const { id, path, depth } = list;
  const place = { id: `${id}/${key}`, path: `${path}[]`, name: "", schema: item, isRequired: true };
  return createField(context, { ...place, depth: depth + 1 }, value);
}

/** The content for a value; for undefined, one to type a value in. */
function contentOf(context: EditContext, place: FieldPlace, shape: Shape, value: unknown): Content {
  if (shape.kind === "object") {
    const fields = propertyFields(context, { ...place, schema: shape.schema }, value);
    return { kind: "object", fields };
  }
  if (shape.kind !== "list") return { kind: "text", text: textOf(shape, value) };
  const values: readonly unknown[] = Array.isArray(value) ? value : [];
  const items = values.map((item, key) => createItem(context, place, shape.item, key, item));
  return { kind: "list", items, nextKey: items.length };
}

function createField(context: EditContext, place: FieldPlace, original: unknown): EditField {
  const { shape, isNullable } = shapeOf(place.schema, context.root, original, place.depth);
  const field = { ...place, shape, isNullable, original };
  if (original === null) return { ...field, content: { kind: "null" } };
  if (original === undefined && !place.isRequired) {
    return { ...field, content: { kind: "omitted" } };
  }
  return { ...field, content: contentOf(context, place, shape, original) };
}

/** The fields of a call: the properties of its schema and its further arguments; below `id`. */
export function editFields(context: EditContext, input: unknown, id = ""): readonly EditField[] {
  return propertyFields(context, { id, path: "", schema: context.root, depth: -1 }, input);
}

/** The value that the tool uses if a field is left out; undefined if it is not known. */
export function defaultOf({ defaults }: EditContext, { path, schema }: EditField): unknown {
  return Object.hasOwn(defaults, path) ? defaults[path] : schema.default;
}

/** A field that holds a value again: the one of the call, else its default, else one to be typed. */
export function withValue(context: EditContext, field: EditField): EditField {
  const value = field.original ?? defaultOf(context, field) ?? undefined;
  const { shape } = shapeOf(field.schema, context.root, value, field.depth);
  return { ...field, shape, content: contentOf(context, field, shape, value) };
}

/** What a field becomes without a value; undefined if it must have one. */
export function clearedContent(field: EditField): Content | undefined {
  const { isRequired, isNullable, original } = field;
  if (isNullable && (isRequired || original === null)) return { kind: "null" };
  return isRequired ? undefined : { kind: "omitted" };
}

/** A list with a further item, whose value is to be typed. */
export function withItem(context: EditContext, list: EditField): EditField {
  const { content, shape } = list;
  if (content.kind !== "list" || shape.kind !== "list") return list;
  const { items, nextKey } = content;
  const item = createItem(context, list, shape.item, nextKey, undefined);
  return { ...list, content: { kind: "list", items: [...items, item], nextKey: nextKey + 1 } };
}

/** Whether a field itself, not a part of it, differs from the call. */
export function isChanged({ content, original, shape, id }: EditField): boolean {
  switch (content.kind) {
    case "omitted":
      return original !== undefined;
    case "null":
      return original !== null;
    case "text":
      return original === null || content.text !== textOf(shape, original);
    case "object":
      return !isRecord(original);
    case "list": {
      const count = Array.isArray(original) ? original.length : 0;
      const isSame = (item: EditField, key: number) => item.id === `${id}/${key}`;
      return count !== content.items.length || !content.items.every(isSame);
    }
  }
}
