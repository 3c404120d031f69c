import { useCallback, useEffect, useRef, useState } from "react";
import { RequestRefused } from "sluicegate";
import { type ChatSummary, listChats, sentenceOf } from "../server.ts";

interface ChatList {
  readonly chats: readonly ChatSummary[];
  readonly next: string | null;
  readonly problem?: string;
  /** Whether the server wants to know first who asks. */
  readonly isStranger?: boolean;
}

/** The list of chats, loaded anew when it is asked for and when the person comes back to the page. */
export function useChats(query: string) {
  const [list, setList] = useState<ChatList>({ chats: [], next: null });
  const asked = useRef(0);

  const refresh = useCallback(async () => {
    const number = ++asked.current;
    try {
      const page = await listChats(query);
      // A slow answer to an older question must not replace a newer one.
      if (number === asked.current) setList(page);
    } catch (error) {
      if (number === asked.current) {
        const isStranger = error instanceof RequestRefused && error.status === 401;
        setList((before) => ({ ...before, problem: sentenceOf(error), isStranger }));
      }
    }
  }, [query]);

  const more = useCallback(async () => {
    if (list.next === null) return;
    const number = ++asked.current;
    const page = await listChats(query, list.next);
    if (number === asked.current) {
      setList({ chats: [...list.chats, ...page.chats], next: page.next });
    }
  }, [list, query]);

  useEffect(() => {
    void refresh();
    const onVisible = () => {
      if (document.visibilityState === "visible") void refresh();
    };
    document.addEventListener("visibilitychange", onVisible);
    addEventListener("focus", onVisible);
    return () => {
      document.removeEventListener("visibilitychange", onVisible);
      removeEventListener("focus", onVisible);
    };
  }, [refresh]);

  return { ...list, refresh, more };
}

export type Chats = ReturnType<typeof useChats>;
