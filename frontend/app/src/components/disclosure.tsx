import "./disclosure.css";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useState } from "react";

interface DisclosureProps {
  readonly label: ReactNode;
  readonly children: ReactNode;
}

/** Collapsed content with a button that expands it. */
export function Disclosure({ label, children }: DisclosureProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div>
      <button
        type="button"
        className="disclosure-button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <ChevronRight size={14} />
        {label}
      </button>
      {isOpen && <div className="disclosure-content">{children}</div>}
    </div>
  );
}
