import { isRecord } from "./approval-requests.ts";

type Cell = string | number | boolean | null;

/** What a call would do, as its tool says. */
export type PreviewContent =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "table";
      readonly columns: readonly string[];
      readonly rows: readonly (readonly Cell[])[];
    }
  | { readonly kind: "diff"; readonly before: string; readonly after: string }
  | { readonly kind: "image"; readonly sha256: string }
  | { readonly kind: "failed"; readonly reason: string };

/** The preview on a card. */
export interface CallPreview {
  readonly content: PreviewContent;
  /** The person who has changed the arguments. */
  readonly editedBy?: string;
  /** What an earlier card of the call showed, which had changed before the call was to run. */
  readonly previous?: { readonly content: PreviewContent; readonly approvalId: string };
}

const UNREADABLE: PreviewContent = {
  kind: "failed",
  reason: "This page cannot show the preview; load it again.",
};

function isCell(value: unknown): value is Cell {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function isTable(columns: unknown, rows: unknown): rows is Cell[][] {
  return (
    Array.isArray(columns) &&
    columns.every((name) => typeof name === "string") &&
    Array.isArray(rows) &&
    rows.every((row) => Array.isArray(row) && row.length === columns.length && row.every(isCell))
  );
}

function content(value: Record<string, unknown>): PreviewContent {
  const { kind, text, columns, rows, before, after, sha256, reason } = value;
  if (kind === "text" && typeof text === "string") return { kind, text };
  if (kind === "table" && isTable(columns, rows)) {
    return { kind, columns: columns as string[], rows };
  }
  if (kind === "diff" && typeof before === "string" && typeof after === "string") {
    return { kind, before, after };
  }
  if (kind === "image" && typeof sha256 === "string") return { kind, sha256 };
  if (kind === "failed" && typeof reason === "string") return { kind, reason };
  return UNREADABLE;
}

/** Parse a preview; what is not valid cannot be approved. Undefined for a call that has none. */
export function parsePreview(value: unknown): CallPreview | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) return { content: UNREADABLE };
  const { editedBy, previous } = value;
  return {
    content: content(value),
    ...(typeof editedBy === "string" && { editedBy }),
    ...(isRecord(previous) &&
      typeof previous.approvalId === "string" && {
        previous: { content: content(previous), approvalId: previous.approvalId },
      }),
  };
}

/** Whether a line or a row is only in what was there before, only in what is there now, or in both. */
export type Change = "removed" | "added" | "same";

export interface Changed<T> {
  readonly change: Change;
  readonly item: T;
}

/** Longer lists are compared as wholes: the table of the comparison has their product. */
const MAX_PRODUCT = 4_000_000;

/** The items before and after, each with its change, in an order that keeps what is in both. */
export function changesBetween<T>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string,
): readonly Changed<T>[] {
  const marked = (items: readonly T[], change: Change) => items.map((item) => ({ change, item }));
  const [old, now] = [before.map(key), after.map(key)];
  if (old.length * now.length > MAX_PRODUCT) {
    return [...marked(before, "removed"), ...marked(after, "added")];
  }
  const width = now.length + 1;
  // The length of the longest common part of what follows each pair of positions.
  const lengths = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const changes: Changed<T>[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      changes.push({ change: "same", item: after[j] as T });
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      changes.push({ change: "removed", item: before[i] as T });
      i += 1;
    } else {
      changes.push({ change: "added", item: after[j] as T });
      j += 1;
    }
  }
  return [...changes, ...marked(before.slice(i), "removed"), ...marked(after.slice(j), "added")];
}

/** The lines of a text; none for an empty one. */
export function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
