import { startTransition, useEffect, useState } from "react";

/** The number of items rendered first; older ones follow while the browser is idle. */
const INITIAL_SIZE = 12;
const INCREMENT = 8;

function whenIdle(callback: () => void): () => void {
  if (typeof requestIdleCallback !== "function") {
    const timer = setTimeout(callback, 50);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(callback, { timeout: 500 });
  return () => cancelIdleCallback(handle);
}

/** The newest items first, and all of them soon after; an item that was listed stays listed. */
export function useIncrementalList<Item>(items: readonly Item[]): readonly Item[] {
  const [hidden, setHidden] = useState(() => Math.max(0, items.length - INITIAL_SIZE));
  useEffect(() => {
    if (hidden === 0) return;
    return whenIdle(() => startTransition(() => setHidden(Math.max(0, hidden - INCREMENT))));
  }, [hidden]);
  // The items may be replaced by fewer ones.
  return hidden < items.length ? items.slice(hidden) : items;
}
