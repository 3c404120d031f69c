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

/** The newest items first, and all of them soon after. */
export function useIncrementalList<Item>(items: readonly Item[]): readonly Item[] {
  const [size, setSize] = useState(INITIAL_SIZE);
  const isPartial = size < items.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each rendered size schedules the next.
  useEffect(() => {
    if (!isPartial) return;
    return whenIdle(() => startTransition(() => setSize((current) => current + INCREMENT)));
  }, [isPartial, size]);
  return isPartial ? items.slice(-size) : items;
}
