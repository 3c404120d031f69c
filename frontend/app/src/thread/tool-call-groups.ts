import { isToolPart, type ToolPart } from "./tool-part.ts";

/** Fewer calls in a row are shown one by one. */
const MIN_LENGTH = 3;

function isQuiet(part: { readonly type: string }): part is ToolPart {
  if (!isToolPart(part) || part.approval !== undefined) return false;
  return part.state === "output-available" && part.preliminary !== true;
}

/** A part with its position, or calls in a row that finished without approval or failure. */
export type PartOrGroup<Part> =
  | { readonly kind: "part"; readonly part: Part; readonly index: number }
  | { readonly kind: "group"; readonly calls: readonly ToolPart[] };

/** Group the finished calls in a row; the starts of steps do not separate them. */
export function groupToolCalls<Part extends { readonly type: string }>(
  parts: readonly Part[],
): readonly PartOrGroup<Part>[] {
  const grouped: PartOrGroup<Part>[] = [];
  let group: { readonly part: Part & ToolPart; readonly index: number }[] = [];
  const close = () => {
    const calls = group.map(({ part }) => part);
    if (group.length >= MIN_LENGTH) grouped.push({ kind: "group", calls });
    else grouped.push(...group.map((entry) => ({ kind: "part" as const, ...entry })));
    group = [];
  };
  for (const [index, part] of parts.entries()) {
    if (part.type === "step-start") continue;
    if (isQuiet(part)) {
      group.push({ part, index });
      continue;
    }
    close();
    grouped.push({ kind: "part", part, index });
  }
  close();
  return grouped;
}
