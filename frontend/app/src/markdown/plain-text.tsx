import { memo, useMemo } from "react";

/** The number of characters in a segment, the unit of layout of a growing text. */
const SEGMENT_LENGTH = 8000;
/** The number of characters before the end of a segment that are searched for a break. */
const SEARCH_LENGTH = 500;

/** Split a text into segments, at the end of a line or a word if possible. */
export function splitSegments(text: string): string[] {
  const segments: string[] = [];
  let start = 0;
  while (text.length - start > SEGMENT_LENGTH) {
    const end = start + SEGMENT_LENGTH;
    const near = text.slice(end - SEARCH_LENGTH, end);
    const breakIndex = Math.max(near.lastIndexOf("\n"), near.lastIndexOf(" "));
    const next = breakIndex === -1 ? end : end - SEARCH_LENGTH + breakIndex + 1;
    segments.push(text.slice(start, next));
    start = next;
  }
  segments.push(text.slice(start));
  return segments;
}

const Segment = memo(function Segment({ text }: { readonly text: string }) {
  return <div className="literal segment">{text}</div>;
});

/** Text without markup, of any length. */
export function PlainText({ text }: { readonly text: string }) {
  const segments = useMemo(() => splitSegments(text), [text]);
  // biome-ignore lint/suspicious/noArrayIndexKey: a segment is identified by its position.
  return segments.map((segment, index) => <Segment key={index} text={segment} />);
}
