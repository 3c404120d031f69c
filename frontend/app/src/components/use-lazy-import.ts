import { useCallback, useEffect, useState } from "react";

const NOT_LOADED = "This could not be loaded; check the network and try again.";

/** A part of the page whose code is loaded when it is first used. */
export interface LazyImport<Part> {
  /** The part, once it was loaded. */
  readonly loaded: () => Part | undefined;
  readonly load: () => Promise<Part>;
}

/** Declare a part; one that could not be loaded is requested again at its next use. */
export function lazyImport<Part>(request: () => Promise<Part>): LazyImport<Part> {
  let part: Part | undefined;
  const load = async () => {
    part ??= await request();
    return part;
  };
  return { loaded: () => part, load };
}

/**
 * Use a part on demand: what it is, once it was loaded; a function that loads it and returns
 * whether it is there; and a sentence if it is not, for instance without a network.
 */
export function useLazyImport<Part>({ loaded, load }: LazyImport<Part>) {
  const [problem, setProblem] = useState<string>();
  const attempt = useCallback(async () => {
    setProblem(undefined);
    try {
      await load();
      return true;
    } catch {
      setProblem(NOT_LOADED);
      return false;
    }
  }, [load]);
  return [loaded(), attempt, problem] as const;
}

/**
 * Load a part after the component is mounted. Returns the part: undefined until it is loaded, or
 * if it cannot be loaded.
 */
export function useImportOnMount<Part>({ loaded, load }: LazyImport<Part>): Part | undefined {
  const [, setLoaded] = useState(false);
  useEffect(() => {
    if (loaded() !== undefined) return;
    let isMounted = true;
    load().then(
      () => {
        if (isMounted) setLoaded(true);
      },
      // Without the part, for instance offline, the component shows what it has.
      () => {},
    );
    return () => {
      isMounted = false;
    };
  }, [loaded, load]);
  return loaded();
}
