import { useEffect } from "react";

/** The frames after which the browser remembers the size of a message. */
const FRAMES = 2;

/** The messages that a change adds or changes. */
function changedMessages({ target, addedNodes }: MutationRecord): readonly HTMLElement[] {
  const element = target instanceof HTMLElement ? target : target.parentElement;
  const message = element?.closest<HTMLElement>(".message");
  if (message) return [message];
  return [...addedNodes].filter(
    (node): node is HTMLElement => node instanceof HTMLElement && node.matches(".message"),
  );
}

/**
 * Messages outside the viewport are not rendered. Each is laid out before that, and again when its
 * content has changed, so that its size is known and the height of the thread does not change while
 * it is scrolled.
 */
export function useMeasuredMessages(thread: HTMLElement | null): void {
  useEffect(() => {
    if (thread === null) return;
    const framesLeft = new Map<HTMLElement, number>();
    let frame: number | undefined;
    const onFrame = () => {
      for (const [message, count] of framesLeft) {
        if (count > 1) {
          framesLeft.set(message, count - 1);
        } else {
          framesLeft.delete(message);
          message.classList.add("measured");
        }
      }
      frame = framesLeft.size > 0 ? requestAnimationFrame(onFrame) : undefined;
    };
    const layOut = (messages: Iterable<HTMLElement>) => {
      for (const message of messages) {
        message.classList.remove("measured");
        framesLeft.set(message, FRAMES);
      }
      if (framesLeft.size > 0) frame ??= requestAnimationFrame(onFrame);
    };
    layOut(thread.querySelectorAll<HTMLElement>(".message"));
    const observer = new MutationObserver((changes) => layOut(changes.flatMap(changedMessages)));
    observer.observe(thread, { childList: true, characterData: true, subtree: true });
    return () => {
      observer.disconnect();
      if (frame !== undefined) cancelAnimationFrame(frame);
    };
  }, [thread]);
}
