import { ActionIcon } from "@mantine/core";
import { useEffect, useState } from "react";
import { Check, Copy } from "./icons.tsx";

const SHOWN_MILLISECONDS = 1500;

/** Puts a text on the clipboard and says so for a moment. */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      // The browser lets no page at the clipboard here; the text can still be selected.
    }
  };
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label={isCopied ? "Copied" : label}
      onClick={() => void copy()}
    >
      {isCopied ? <Check size={16} /> : <Copy size={16} />}
    </ActionIcon>
  );
}
