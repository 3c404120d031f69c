import { Fragment, useState } from "react";
import { characterName, codePointName } from "../text-checks/character-names.ts";
import { type Piece, visiblePieces } from "../text-checks/hidden-characters.ts";
import { Button } from "./button.tsx";
import { formatCount } from "./canonical-number.ts";
import { useLongText } from "./use-unread-texts.ts";

/** Longer text is truncated until it is expanded. */
const MAX_LENGTH = 600;
const MAX_LINES = 24;

/** The beginning of a long text; the text itself if it is not long. */
function beginningOf(text: string): string {
  const lines = text.slice(0, MAX_LENGTH + 1).split("\n");
  if (lines.length > MAX_LINES) return lines.slice(0, MAX_LINES).join("\n").slice(0, MAX_LENGTH);
  if (text.length <= MAX_LENGTH) return text;
  // A character of two code units is not divided.
  return text.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, "");
}

function VisiblePiece({ piece }: { readonly piece: Piece }) {
  if (piece.kind === "text") return piece.text;
  const times = piece.count > 1 ? ` ×${piece.count}` : "";
  return (
    <mark title={characterName(piece.character)}>
      {codePointName(piece.character)}
      {times}
    </mark>
  );
}

/**
 * Text of a tool or a model, rendered literally: without markup, with the names of hidden
 * characters, and isolated so that right-to-left text does not affect its surroundings.
 */
export function VisibleText({ text }: { readonly text: string }) {
  const [isExpanded, setExpanded] = useState(false);
  const beginning = beginningOf(text);
  const isLong = beginning !== text;
  const markRead = useLongText(text, isLong);
  const toggle = () => {
    markRead();
    setExpanded(!isExpanded);
  };
  const shown = isExpanded ? text : beginning;
  return (
    <bdi className="literal">
      {visiblePieces(shown).map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a piece is identified by its position.
        <Fragment key={index}>
          <VisiblePiece piece={piece} />
        </Fragment>
      ))}
      {isLong && (
        <>
          {isExpanded ? " " : "… "}
          <Button size="sm" onClick={toggle}>
            {isExpanded ? "Show less" : `Show all ${formatCount(text.length)} characters`}
          </Button>
        </>
      )}
    </bdi>
  );
}
