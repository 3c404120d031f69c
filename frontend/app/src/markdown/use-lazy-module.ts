import { useEffect, useState } from "react";

const loaded = new Map<() => Promise<unknown>, unknown>();

/**
 * The value of a module that is loaded when a component first needs it; undefined before that, and
 * if it cannot be loaded. `load` is the same function for each rendering.
 */
export function useLazyModule<Value>(load: () => Promise<Value>): Value | undefined {
  const [, setLoaded] = useState(false);
  useEffect(() => {
    if (loaded.has(load)) return;
    let isMounted = true;
    load().then(
      (value) => {
        loaded.set(load, value);
        if (isMounted) setLoaded(true);
      },
      // Without the module, for instance offline, the source is shown.
      () => {},
    );
    return () => {
      isMounted = false;
    };
  }, [load]);
  return loaded.get(load) as Value | undefined;
}
