import { Box } from "@mantine/core";
import { memo, useMemo } from "react";

/** Characters of one piece; a browser lays out no more than this anew when a text grows. */
const PIECE = 8000;
/** How far before the end of a piece a place is looked for at which lines may break. */
const REACH = 500;

/** Cut a text into pieces, at the end of a line or a word where there is one. */
export function pieces(text: string): string[] {
  const cut: string[] = [];
  let start = 0;
  while (text.length - start > PIECE) {
    const end = start + PIECE;
    const near = text.slice(end - REACH, end);
    const place = Math.max(near.lastIndexOf("\n"), near.lastIndexOf(" "));
    const next = place === -1 ? end : end - REACH + place + 1;
    cut.push(text.slice(start, next));
    start = next;
  }
  cut.push(text.slice(start));
  return cut;
}

const Piece = memo(function Piece({ text }: { readonly text: string }) {
  return <Box className="as-written piece">{text}</Box>;
});

/** A text as it was written, however long it is. */
export function Plain({ text }: { readonly text: string }) {
  const cut = useMemo(() => pieces(text), [text]);
  // biome-ignore lint/suspicious/noArrayIndexKey: a piece is its place in the text.
  return cut.map((piece, index) => <Piece key={index} text={piece} />);
}
