import type { ReactNode } from "react";

interface MessageContainerProps {
  readonly label: "You" | "Assistant";
  readonly isBusy?: boolean;
  readonly children: ReactNode;
}

/** The container of one message, with its label. */
export function MessageContainer({ label, isBusy = false, children }: MessageContainerProps) {
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
