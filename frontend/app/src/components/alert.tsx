import "./alert.css";
import { CircleAlert, TriangleAlert, X } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "./button.tsx";

interface AlertProps {
  readonly title: string;
  readonly tone: "danger" | "warning";
  /** Whether screen readers announce the alert when it appears. */
  readonly isAnnounced?: boolean;
  /** Shows a button that closes the alert. */
  readonly onClose?: (() => void) | undefined;
  readonly children: ReactNode;
}

/** A notice with a title. */
export function Alert({ title, tone, isAnnounced = false, onClose, children }: AlertProps) {
  const Icon = tone === "danger" ? CircleAlert : TriangleAlert;
  return (
    <div className="alert" data-tone={tone} {...(isAnnounced && { role: "alert" })}>
      <span className="alert-icon">
        <Icon size={18} />
      </span>
      <div className="stack gap-2 grow">
        <p className="alert-title text-sm strong">{title}</p>
        {children}
      </div>
      {onClose !== undefined && (
        <IconButton label="Close" size="sm" onClick={onClose}>
          <X size={16} />
        </IconButton>
      )}
    </div>
  );
}
