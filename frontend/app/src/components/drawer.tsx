import "./drawer.css";
import { X } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { IconButton } from "./button.tsx";

interface DrawerProps {
  readonly title: string;
  readonly closeLabel: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A panel at the side of the page, which stays usable beside it. */
export function Drawer({ title, closeLabel, onClose, children }: DrawerProps) {
  const drawer = useRef<HTMLElement>(null);
  const heading = useId();
  useEffect(() => {
    const focused = document.activeElement;
    drawer.current?.focus();
    return () => {
      if (focused instanceof HTMLElement) focused.focus();
    };
  }, []);
  const closeOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  return (
    <section
      ref={drawer}
      className="drawer"
      role="dialog"
      aria-labelledby={heading}
      tabIndex={-1}
      onKeyDown={closeOnEscape}
    >
      <div className="drawer-header">
        <h2 id={heading}>{title}</h2>
        <IconButton label={closeLabel} onClick={onClose}>
          <X size={18} />
        </IconButton>
      </div>
      <div className="drawer-body">{children}</div>
    </section>
  );
}
