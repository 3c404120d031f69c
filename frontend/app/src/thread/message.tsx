import type { ReactNode } from "react";

interface MessageProps {
  readonly label: "You" | "Assistant";
  readonly isBusy?: boolean;
  readonly children: ReactNode;
}

/** The frame of one message. */
export function Message({ label, isBusy = false, children }: MessageProps) {
  return (
    <article
      className="message"
      data-author={label === "You" ? "user" : "assistant"}
      aria-label={label}
      aria-busy={isBusy}
    >
      {children}
    </article>
  );
}
