import "./json-value.css";
import { TriangleAlert } from "lucide-react";
import { useMemo } from "react";
import { valueFindings } from "../text-checks/findings.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";

/** The number of findings that are listed. */
const MAX_FINDINGS = 8;
const MAX_NAME = 60;

function sentencesFor(value: unknown, name: string | undefined): string[] {
  const sentences = valueFindings(value).map(({ path, finding }) => {
    const place = [name, path].filter(Boolean).join(" ");
    return place === "" ? finding : `${visibleName(place.slice(0, MAX_NAME))}: ${finding}`;
  });
  const unique = [...new Set(sentences)];
  const more = unique.length - MAX_FINDINGS;
  return more > 0
    ? [...unique.slice(0, MAX_FINDINGS), `${more} more places have such characters.`]
    : unique;
}

interface TextWarningsProps {
  /** A text, or a JSON value with texts. */
  readonly value: unknown;
  /** How to refer to the value; undefined if the findings are beside it. */
  readonly name?: string;
}

/** Warnings about characters that can mislead a reader; nothing if there are none. */
export function TextWarnings({ value, name }: TextWarningsProps) {
  const sentences = useMemo(() => sentencesFor(value, name), [value, name]);
  if (sentences.length === 0) return null;
  return (
    <div className="stack gap-1">
      {sentences.map((sentence) => (
        <div key={sentence} className="row nowrap start">
          <span className="warning">
            <TriangleAlert size={16} />
          </span>
          <bdi className="literal text-sm">{sentence}</bdi>
        </div>
      ))}
    </div>
  );
}
