import { Button, Mark } from "@mantine/core";
import { Fragment, useState } from "react";
import { counted } from "./counted.ts";
import { type Piece, visiblePieces } from "./visible-text.ts";

/** Longer texts are cut until somebody asks for the rest. */
const SHORT = 600;

function Shown({ piece }: { readonly piece: Piece }) {
  if (piece.kind === "text") return piece.text;
  const times = piece.count > 1 ? ` ×${piece.count}` : "";
  return (
    <Mark title="A character that cannot be seen">
      {piece.name}
      {times}
    </Mark>
  );
}

/**
 * A text of a tool or a model, exactly as it is: nothing of it is markup, what cannot be seen is
 * named, and what is written from right to left changes nothing around it.
 */
export function Visible({ text }: { readonly text: string }) {
  const [whole, setWhole] = useState(false);
  const isLong = text.length > SHORT;
  const shown = isLong && !whole ? text.slice(0, SHORT) : text;
  return (
    <bdi className="as-written">
      {visiblePieces(shown).map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no identity but their place.
        <Fragment key={index}>
          <Shown piece={piece} />
        </Fragment>
      ))}
      {isLong && (
        <>
          {whole ? " " : "… "}
          <Button size="compact-xs" variant="default" onClick={() => setWhole(!whole)}>
            {whole ? "Show less" : `Show all ${counted(text.length)} characters`}
          </Button>
        </>
      )}
    </bdi>
  );
}
