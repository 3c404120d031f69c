import { type ReactNode, useEffect, useRef } from "react";

interface MessageProps {
  readonly label: "You" | "Assistant";
  readonly isBusy?: boolean;
  readonly children: ReactNode;
}

/**
 * The frame of one message. Messages outside the viewport are not rendered; each is laid out once
 * before that, so that its size is known and the height of the thread does not change.
 */
export function Message({ label, isBusy = false, children }: MessageProps) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => element.current?.classList.add("measured"));
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  return (
    <article
      ref={element}
      className="message"
      data-author={label === "You" ? "user" : "assistant"}
      aria-label={label}
      aria-busy={isBusy}
    >
      {children}
    </article>
  );
}
