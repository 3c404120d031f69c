import { jsonText, numberText } from "../components/canonical-number.ts";
import { isRecord } from "../is-record.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";

/** An argument whose value was changed; undefined if it was or is left out. */
export interface ArgumentChange {
  readonly name: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (value === "") return "empty text";
  if (typeof value === "string") return visibleName(value);
  return typeof value === "number" ? numberText(value) : visibleName(jsonText(value));
}

/** The parts of an object or a list, by the path that leads to them. */
function partsOf(path: string, value: object): ReadonlyMap<string, unknown> {
  if (Array.isArray(value)) return new Map(value.map((item, at) => [`${path}[${at}]`, item]));
  const prefix = path === "" ? "" : `${path}.`;
  return new Map(Object.entries(value).map(([name, part]) => [`${prefix}${name}`, part]));
}

function haveParts(one: unknown, other: unknown): one is object {
  return (isRecord(one) && isRecord(other)) || (Array.isArray(one) && Array.isArray(other));
}

/**
 * The differences between the requested and the edited arguments, each with its path, such as
 * `address.city` or `items[0].count`.
 */
export function argumentChanges(before: unknown, after: unknown, path = ""): ArgumentChange[] {
  if (haveParts(before, after)) {
    const [one, other] = [partsOf(path, before), partsOf(path, after as object)];
    return [...new Set([...one.keys(), ...other.keys()])].flatMap((name) =>
      argumentChanges(one.get(name), other.get(name), name),
    );
  }
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  return [{ name: path, before: textOf(before), after: textOf(after) }];
}
