import { useCallback, useSyncExternalStore } from "react";

const CHANGED = "sluicegate:stored-text-changed";

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    // The browser does not permit storage.
    return null;
  }
}

function write(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {
    // The browser does not permit storage, or it is full.
  }
}

function subscribe(listener: () => void): () => void {
  addEventListener("storage", listener);
  addEventListener(CHANGED, listener);
  return () => {
    removeEventListener("storage", listener);
    removeEventListener(CHANGED, listener);
  };
}

/** A text that is stored in this browser, the same in every tab. */
export function useStoredText(
  key: string,
  fallback: string,
): readonly [string, (text: string) => void] {
  const text = useSyncExternalStore(subscribe, () => read(key) ?? fallback);
  const setText = useCallback(
    (next: string) => {
      write(key, next);
      dispatchEvent(new Event(CHANGED));
    },
    [key],
  );
  return [text, setText];
}
