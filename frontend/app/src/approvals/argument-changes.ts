import { jsonText, numberText } from "../components/format-number.ts";
import { visibleName } from "../components/visible-text.ts";
import { isRecord } from "./approval-requests.ts";

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

/** The differences between the requested and the edited arguments. */
export function argumentChanges(before: unknown, after: unknown): ArgumentChange[] {
  const one = isRecord(before) ? before : {};
  const other = isRecord(after) ? after : {};
  const own = (args: Record<string, unknown>, name: string) =>
    Object.hasOwn(args, name) ? args[name] : undefined;
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .map((name) => ({ name, from: own(one, name), to: own(other, name) }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to))
    .map(({ name, from, to }) => ({ name, before: textOf(from), after: textOf(to) }));
}
