import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/text-field.tsx";
import type { Decision } from "./decision.ts";

const MAX_REASON = 2000;

interface DenyFormProps {
  readonly isSending: boolean;
  readonly onDeny: (decision: Decision & { approved: false }) => void;
  readonly onCancel: () => void;
}

/** A form for the reason of a denial, which the agent reads. */
export function DenyForm({ isSending, onDeny, onCancel }: DenyFormProps) {
  const [reason, setReason] = useState("");
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    form.current?.querySelector("input")?.focus();
  }, []);
  const deny = () => {
    const trimmed = reason.trim();
    if (!isSending) onDeny({ approved: false, ...(trimmed !== "" && { reason: trimmed }) });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
  };
  const onFieldKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) deny();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div ref={form} className="stack" role="group" aria-label="Deny the call" onKeyDown={onKeyDown}>
      <TextField
        label="Reason for denying (optional)"
        description="The agent reads it."
        maxLength={MAX_REASON}
        value={reason}
        onChange={setReason}
        onKeyDown={onFieldKeyDown}
      />
      <div className="row">
        <Button variant="danger" aria-disabled={isSending} onClick={deny}>
          Deny
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </div>
  );
}
