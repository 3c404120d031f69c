import { isToolPart, type ToolPart } from "./tool-part.ts";

/** Fewer calls in a row are shown one by one. */
const MIN_LENGTH = 3;

function isQuiet(part: { readonly type: string }): part is ToolPart {
  if (!isToolPart(part) || part.approval !== undefined) return false;
  return part.state === "output-available" && part.preliminary !== true;
}

/** A part with its position, or calls in a row that finished without approval or failure. */
export type PartOrRun<Part> =
  | { readonly kind: "part"; readonly part: Part; readonly index: number }
  | { readonly kind: "run"; readonly calls: readonly ToolPart[] };

/** Group the finished calls in a row; the starts of steps do not separate them. */
export function groupToolRuns<Part extends { readonly type: string }>(
  parts: readonly Part[],
): readonly PartOrRun<Part>[] {
  const grouped: PartOrRun<Part>[] = [];
  let run: { readonly part: Part & ToolPart; readonly index: number }[] = [];
  const close = () => {
    const calls = run.map(({ part }) => part);
    if (run.length >= MIN_LENGTH) grouped.push({ kind: "run", calls });
    else grouped.push(...run.map((entry) => ({ kind: "part" as const, ...entry })));
    run = [];
  };
  for (const [index, part] of parts.entries()) {
    if (part.type === "step-start") continue;
    if (isQuiet(part)) {
      run.push({ part, index });
      continue;
    }
    close();
    grouped.push({ kind: "part", part, index });
  }
  close();
  return grouped;
}
