import { useCallback, useEffect, useState } from "react";

/** The prefix of the keys of drafts in the storage of the browser. */
const PREFIX = "sluicegate.draft.";
/** The number of drafts that are kept; the oldest are dropped. */
const MAX_DRAFTS = 50;
/** The characters of a draft that are kept. */
const MAX_LENGTH = 50_000;

interface Draft {
  readonly text: string;
  /** Whether files were attached, which cannot be stored. */
  readonly hadFiles: boolean;
  /** Milliseconds since the epoch. */
  readonly savedAt: number;
}

const EMPTY: Draft = { text: "", hadFiles: false, savedAt: 0 };

function parseDraft(json: string | null): Draft {
  try {
    const draft: Partial<Draft> = JSON.parse(json ?? "{}");
    return {
      text: String(draft.text ?? ""),
      hadFiles: draft.hadFiles === true,
      savedAt: Number(draft.savedAt ?? 0),
    };
  } catch {
    return EMPTY;
  }
}

function readDraft(chat: string): Draft {
  try {
    return parseDraft(localStorage.getItem(PREFIX + chat));
  } catch {
    // The browser does not permit storage.
    return EMPTY;
  }
}

function dropOldest(): void {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  if (keys.length <= MAX_DRAFTS) return;
  const savedAt = new Map(keys.map((key) => [key, parseDraft(localStorage.getItem(key)).savedAt]));
  keys.sort((one, other) => (savedAt.get(one) ?? 0) - (savedAt.get(other) ?? 0));
  for (const key of keys.slice(0, keys.length - MAX_DRAFTS)) localStorage.removeItem(key);
}

function writeDraft(chat: string, text: string, hadFiles: boolean): void {
  const key = PREFIX + chat;
  try {
    if (text === "" && !hadFiles) {
      localStorage.removeItem(key);
      return;
    }
    const isNew = localStorage.getItem(key) === null;
    const draft: Draft = { text: text.slice(0, MAX_LENGTH), hadFiles, savedAt: Date.now() };
    localStorage.setItem(key, JSON.stringify(draft));
    if (isNew) dropOldest();
  } catch {
    // The browser does not permit storage, or it is full.
  }
}

/** Remove the drafts of all chats from this browser. */
export function removeDrafts(): void {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
    for (const key of keys) localStorage.removeItem(key);
  } catch {
    // The browser does not permit storage.
  }
}

/**
 * The text of the message that is being written in a chat, kept in this browser until it is sent.
 * Attached files are not kept; `lostFiles` is true for a restored draft that had some.
 */
export function useDraft(chat: string, hasFiles: boolean) {
  const [restored] = useState(() => readDraft(chat));
  const [text, setText] = useState(restored.text);
  const [lostFiles, setLostFiles] = useState(restored.hadFiles);
  useEffect(() => writeDraft(chat, text, hasFiles || lostFiles), [chat, text, hasFiles, lostFiles]);
  const dismissLostFiles = useCallback(() => setLostFiles(false), []);
  return { text, setText, lostFiles: lostFiles && !hasFiles, dismissLostFiles };
}
