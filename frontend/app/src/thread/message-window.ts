import { startTransition, useEffect, useState } from "react";

/** Messages that are drawn at once; older ones follow while the page has nothing else to do. */
const FIRST = 12;
const MORE = 24;

function whenIdle(work: () => void): () => void {
  if (typeof requestIdleCallback !== "function") {
    const timer = setTimeout(work, 50);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(work, { timeout: 500 });
  return () => cancelIdleCallback(handle);
}

/** The newest of the ids first, and soon all of them. */
export function useWindow(ids: readonly string[]): readonly string[] {
  const [size, setSize] = useState(FIRST);
  const isPartial = size < ids.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each size that was drawn asks for the next.
  useEffect(() => {
    if (!isPartial) return;
    return whenIdle(() => startTransition(() => setSize((drawn) => drawn + MORE)));
  }, [isPartial, size]);
  return isPartial ? ids.slice(-size) : ids;
}
