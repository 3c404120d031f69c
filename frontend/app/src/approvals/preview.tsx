import "./preview.css";
import { type ReactNode, useEffect, useState } from "react";
import { API_URL } from "../api.ts";
import { Alert } from "../components/alert.tsx";
import { JsonValue } from "../components/json-value.tsx";
import { TextWarnings } from "../components/text-warnings.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { type Change, type Changed, changesBetween, linesOf } from "./diff.ts";
import type { CallPreview, PreviewContent } from "./preview-content.ts";

type Table = Extract<PreviewContent, { kind: "table" }>;
type Row = Table["rows"][number];

const SIGNS = { added: "+", removed: "−", same: " " } as const;
const WORDS = { added: "new", removed: "gone", same: "" } as const;

function Marked({ change, children }: { readonly change: Change; readonly children: ReactNode }) {
  if (change === "added") return <ins>{children}</ins>;
  return change === "removed" ? <del>{children}</del> : children;
}

/** A part of a card that scrolls by itself, also by the keyboard. */
function Region({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus.
    <section className="preview-region" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

function Lines({ lines }: { readonly lines: readonly Changed<string>[] }) {
  return (
    <ol className="preview-lines">
      {lines.map(({ change, item }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is identified by its position.
        <li key={index} data-change={change}>
          <span className="preview-sign" aria-hidden="true">
            {SIGNS[change]}
          </span>
          <span>
            <Marked change={change}>
              <VisibleText text={item} />
            </Marked>
          </span>
        </li>
      ))}
    </ol>
  );
}

interface RowsProps {
  readonly columns: Table["columns"];
  readonly rows: readonly Changed<Row>[];
  /** Whether a first column says what is new and what is gone. */
  readonly isMarked: boolean;
}

function Rows({ columns, rows, isMarked }: RowsProps) {
  return (
    <table className="table">
      <thead>
        <tr>
          {isMarked && (
            <th scope="col">
              <span className="visually-hidden">Change</span>
            </th>
          )}
          {columns.map((name) => (
            <th key={name} scope="col">
              <VisibleText text={name} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ change, item }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is identified by its position.
          <tr key={index} data-change={change}>
            {isMarked && (
              <td>
                <span aria-hidden="true">{SIGNS[change]}</span>
                <span className="visually-hidden">{WORDS[change]}</span>
              </td>
            )}
            {item.map((cell, column) => (
              <td key={columns[column]}>
                <Marked change={change}>
                  {typeof cell === "string" ? <VisibleText text={cell} /> : <Plain value={cell} />}
                </Marked>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Plain({ value }: { readonly value: number | boolean | null }) {
  return value === null ? <span className="dim">–</span> : <JsonValue value={value} />;
}

interface PictureProps {
  readonly approvalId: string;
  readonly sha256: string;
  readonly label: string;
  readonly onState: (state: "loading" | "shown" | "missing") => void;
}

function Picture({ approvalId, sha256, label, onState }: PictureProps) {
  const src = `${API_URL}/previews/${encodeURIComponent(approvalId)}?of=${sha256}`;
  useEffect(() => {
    if (src !== "") onState("loading");
  }, [onState, src]);
  return (
    <img
      className="preview-image"
      src={src}
      alt={label}
      onLoad={() => onState("shown")}
      onError={() => onState("missing")}
    />
  );
}

const same = <T,>(items: readonly T[]) => items.map((item) => ({ change: "same" as const, item }));

/** The lines that an approver compares: of a text the earlier text, of a difference its sides. */
function comparedLines(now: PreviewContent, before: PreviewContent | undefined) {
  if (now.kind === "diff") {
    return changesBetween(linesOf(now.before), linesOf(now.after), (line) => line);
  }
  if (now.kind !== "text") return [];
  if (before?.kind !== "text") return same(linesOf(now.text));
  return changesBetween(linesOf(before.text), linesOf(now.text), (line) => line);
}

function comparedRows(now: Table, before: PreviewContent | undefined) {
  const isComparable = before?.kind === "table" && String(before.columns) === String(now.columns);
  return isComparable
    ? changesBetween(before.rows, now.rows, (row) => JSON.stringify(row))
    : same(now.rows);
}

interface ContentProps {
  readonly content: PreviewContent;
  readonly approvalId: string;
  /** What the earlier card showed, with which a text or a table is compared. */
  readonly before?: PreviewContent | undefined;
  readonly label: string;
  readonly onPicture: (state: "loading" | "shown" | "missing") => void;
}

function Content({ content, approvalId, before, label, onPicture }: ContentProps) {
  switch (content.kind) {
    case "failed":
      return (
        <Alert tone="danger" title="What this call would do cannot be shown">
          <p className="text-sm literal">
            <VisibleText text={content.reason} />
          </p>
        </Alert>
      );
    case "image":
      return (
        <Picture
          approvalId={approvalId}
          sha256={content.sha256}
          label={label}
          onState={onPicture}
        />
      );
    case "table": {
      const rows = comparedRows(content, before);
      const count = content.rows.length;
      return (
        <>
          <p className="text-sm dim">{count === 1 ? "1 row" : `${count} rows`}</p>
          {rows.length > 0 && (
            <Region label={label}>
              <Rows columns={content.columns} rows={rows} isMarked={before !== undefined} />
            </Region>
          )}
        </>
      );
    }
    case "text":
      if (before?.kind !== "text") {
        return (
          <Region label={label}>
            <p className="preview-text">
              <VisibleText text={content.text} />
            </p>
          </Region>
        );
      }
      return (
        <Region label={label}>
          <Lines lines={comparedLines(content, before)} />
        </Region>
      );
    case "diff":
      return (
        <Region label={label}>
          <Lines lines={comparedLines(content, before)} />
        </Region>
      );
  }
}

interface PreviewProps {
  readonly preview: CallPreview;
  readonly approvalId: string;
  /** Called with the reason why the call cannot be approved, if there is one. */
  readonly onLock: (reason: string | undefined) => void;
}

const LOADING = "The picture of what this call would do is being loaded.";
const MISSING = "The picture of what this call would do could not be loaded; load the page again.";
const FAILED = "What this call would do cannot be shown, so it can only be denied.";

/** What a call would do, and what has changed since an earlier card showed it. */
export function Preview({ preview, approvalId, onLock }: PreviewProps) {
  const { content, editedBy, previous } = preview;
  const [picture, setPicture] = useState<"loading" | "shown" | "missing">("loading");
  const isPicture = content.kind === "image";
  const ofPicture = { loading: LOADING, missing: MISSING, shown: undefined }[picture];
  const lock = content.kind === "failed" ? FAILED : isPicture ? ofPicture : undefined;
  useEffect(() => onLock(lock), [onLock, lock]);
  // A text and a table are marked where they differ; the others stand beside the earlier one.
  const isBeside =
    previous !== undefined &&
    (content.kind !== previous.content.kind || !["text", "table"].includes(content.kind));
  return (
    <div className="stack gap-2">
      <p className="text-sm strong">What this call would do</p>
      {editedBy !== undefined && (
        <p className="text-sm">
          With the arguments as <VisibleText text={editedBy} /> has changed them.
        </p>
      )}
      {previous !== undefined && (
        <Alert tone="warning" title="It has changed since it was approved">
          <p className="text-sm">
            The call did not run then. {isBeside ? "Both are shown." : "The changes are marked."}
          </p>
        </Alert>
      )}
      {isBeside && previous !== undefined && (
        <>
          <p className="text-sm dim">Before:</p>
          <Content
            content={previous.content}
            approvalId={previous.approvalId}
            label="What it would have done"
            onPicture={ignore}
          />
          <p className="text-sm dim">Now:</p>
        </>
      )}
      <Content
        content={content}
        approvalId={approvalId}
        before={isBeside ? undefined : previous?.content}
        label="What this call would do"
        onPicture={setPicture}
      />
      {content.kind === "text" && <TextWarnings name="Preview" value={content.text} />}
    </div>
  );
}

function ignore() {}
