import { useEffect, useReducer, useRef } from "react";

/** The number of characters that one rendering may add. */
export const STEP = 10_000;

/**
 * The part of a growing text to render. A large addition is revealed frame by frame, so that the
 * page stays responsive; the initial text is rendered completely.
 */
export function useGradualText(text: string): string {
  const rendered = useRef(text.length);
  const [, renderAgain] = useReducer((count: number) => count + 1, 0);
  const next = Math.min(text.length, rendered.current + STEP);
  useEffect(() => {
    rendered.current = next;
    if (next === text.length) return;
    const frame = requestAnimationFrame(renderAgain);
    return () => cancelAnimationFrame(frame);
  });
  return next === text.length ? text : text.slice(0, next);
}
