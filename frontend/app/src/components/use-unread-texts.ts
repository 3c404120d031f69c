import { createContext, use, useCallback, useLayoutEffect, useMemo, useState } from "react";

/** Which of the long texts that are rendered below a component were shown in full. */
interface Reading {
  readonly markRead: (text: string) => void;
  /** Add a rendered text; returns a function that removes it. */
  readonly add: (text: string) => () => void;
}

/** Provided by a component that waits until its long texts were shown in full. */
export const ReadingContext = createContext<Reading | undefined>(undefined);

function withCount(counts: ReadonlyMap<string, number>, text: string, change: number) {
  const count = (counts.get(text) ?? 0) + change;
  const next = new Map(counts).set(text, count);
  if (count === 0) next.delete(text);
  return next;
}

/** The value for `ReadingContext`, and the number of long texts that were not shown in full. */
export function useReading(): readonly [reading: Reading, unread: number] {
  const [rendered, setRendered] = useState<ReadonlyMap<string, number>>(new Map());
  const [read, setRead] = useState<ReadonlySet<string>>(new Set());
  const add = useCallback((text: string) => {
    setRendered((counts) => withCount(counts, text, 1));
    return () => setRendered((counts) => withCount(counts, text, -1));
  }, []);
  const reading = useMemo(
    () => ({
      markRead: (text: string) => setRead((texts) => new Set(texts).add(text)),
      add,
    }),
    [add],
  );
  return [reading, [...rendered.keys()].filter((text) => !read.has(text)).length];
}

/** Report a long text to the component that waits for it, if there is one. */
export function useLongText(text: string, isLong: boolean): () => void {
  const reading = use(ReadingContext);
  const add = reading?.add;
  // Before the first paint: no button is enabled in between.
  useLayoutEffect(() => (isLong ? add?.(text) : undefined), [add, text, isLong]);
  return () => reading?.markRead(text);
}
