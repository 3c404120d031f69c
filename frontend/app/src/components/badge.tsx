import "./badge.css";
import type { ComponentProps, ReactNode } from "react";

type BadgeProps = ComponentProps<"span"> & {
  readonly tone?: "neutral" | "accent" | "danger" | "warning" | "success";
  /** An icon before the text. */
  readonly icon?: ReactNode;
};

/** A short label of a state. */
export function Badge({ tone = "neutral", icon, children, ...rest }: BadgeProps) {
  return (
    <span {...rest} className="badge" data-tone={tone}>
      {icon}
      {children}
    </span>
  );
}
