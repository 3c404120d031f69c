import { useEffect, useReducer, useRef } from "react";

/** Characters that one drawing of a growing text may add. */
export const STEP = 10_000;

/**
 * The part of a growing text to draw now. What comes all at once follows frame by frame, so that
 * the page stays free for the person; what is there at the first drawing is drawn whole.
 */
export function useRevealed(text: string): string {
  const drawn = useRef(text.length);
  const [, drawAgain] = useReducer((count: number) => count + 1, 0);
  const next = Math.min(text.length, drawn.current + STEP);
  useEffect(() => {
    drawn.current = next;
    if (next === text.length) return;
    const frame = requestAnimationFrame(drawAgain);
    return () => cancelAnimationFrame(frame);
  });
  return next === text.length ? text : text.slice(0, next);
}
