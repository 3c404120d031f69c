import { isRecord } from "../is-record.ts";

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
