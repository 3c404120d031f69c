import { useCallback, useEffect, useMemo, useRef, useState } from "react";

/** The distance from the end, in pixels, that counts as the end. */
const TOLERANCE = 8;

interface StickToBottom {
  readonly viewportRef: (element: HTMLElement | null) => void;
  readonly contentRef: (element: HTMLElement | null) => void;
  /** Whether the end of the content is visible. */
  readonly isAtBottom: boolean;
  /** Scroll to the end, and follow it from then on. */
  readonly scrollToBottom: () => void;
}

function distanceFromEnd({ scrollHeight, scrollTop, clientHeight }: HTMLElement): number {
  return scrollHeight - scrollTop - clientHeight;
}

/**
 * A viewport that follows the end of its content while the end is visible. Scrolling up ends that;
 * scrolling to the end resumes it.
 */
export function useStickToBottom(): StickToBottom {
  const [viewport, setViewport] = useState<HTMLElement | null>(null);
  const [content, setContent] = useState<HTMLElement | null>(null);
  const [isAtBottom, setAtBottom] = useState(true);
  const isFollowing = useRef(true);
  const follow = useCallback((isAtEnd: boolean) => {
    isFollowing.current = isAtEnd;
    setAtBottom(isAtEnd);
  }, []);
  useEffect(() => {
    if (viewport === null || content === null) return;
    let lastTop = viewport.scrollTop;
    const onScroll = () => {
      const { scrollTop } = viewport;
      if (distanceFromEnd(viewport) <= TOLERANCE) follow(true);
      else if (scrollTop < lastTop) follow(false);
      lastTop = scrollTop;
    };
    // It is notified after layout and before paint: the end is never seen to leave.
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) {
        viewport.scrollTop = viewport.scrollHeight;
        // A thread that has become shorter is not one that a person scrolls up.
        lastTop = viewport.scrollTop;
      } else follow(distanceFromEnd(viewport) <= TOLERANCE);
    });
    observer.observe(content);
    observer.observe(viewport);
    viewport.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      viewport.removeEventListener("scroll", onScroll);
    };
  }, [viewport, content, follow]);
  const scrollToBottom = useCallback(() => {
    follow(true);
    if (viewport !== null) viewport.scrollTop = viewport.scrollHeight;
  }, [viewport, follow]);
  return useMemo(
    () => ({ viewportRef: setViewport, contentRef: setContent, isAtBottom, scrollToBottom }),
    [isAtBottom, scrollToBottom],
  );
}
