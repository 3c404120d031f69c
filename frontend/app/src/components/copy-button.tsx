import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { IconButton } from "./button.tsx";

const FEEDBACK_MILLISECONDS = 1500;

/** A button that copies a text to the clipboard and confirms it briefly. */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), FEEDBACK_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      // The clipboard is not available in this context; the text can still be selected.
    }
  };
  return (
    <IconButton label={isCopied ? "Copied" : label} size="sm" onClick={() => void copy()}>
      {isCopied ? <Check size={16} /> : <Copy size={16} />}
    </IconButton>
  );
}
