import { useCallback, useEffect, useRef, useState } from "react";
import { RequestRefused } from "sluicegate";
import { type ChatPage, type ChatSummary, listChats, sentenceOf } from "../server.ts";
import { whenBack } from "../when-back.ts";

const REFRESH_MILLISECONDS = 30_000;

interface ChatList {
  readonly chats: readonly ChatSummary[];
  readonly next: string | null;
  readonly problem?: string;
  /** Whether the server wants to know first who asks. */
  readonly isStranger?: boolean;
}

/** The list from its beginning, as many pages of it as there were shown, and `more` of them. */
async function load(query: string, shown: number, more: number): Promise<ChatPage> {
  let list = await listChats(query);
  for (let left = more; list.next !== null && (list.chats.length < shown || left > 0); ) {
    if (list.chats.length >= shown) left -= 1;
    const page = await listChats(query, list.next);
    list = { chats: [...list.chats, ...page.chats], next: page.next };
  }
  return list;
}

/** The list of chats, loaded anew when it is asked for and when the person comes back to the page. */
export function useChats(query: string) {
  const [list, setList] = useState<ChatList>({ chats: [], next: null });
  const asked = useRef(0);
  const shown = useRef({ query, count: 0 });

  const show = useCallback(
    async (more: number) => {
      const number = ++asked.current;
      const count = shown.current.query === query ? shown.current.count : 0;
      try {
        const found = await load(query, count, more);
        // A slow answer to an older question must not replace a newer one.
        if (number !== asked.current) return;
        // Without chats that are gone, the same number of pages is fewer chats.
        shown.current = { query, count: more > 0 || count > 0 ? found.chats.length : 0 };
        setList(found);
      } catch (error) {
        if (number !== asked.current) return;
        const isStranger = error instanceof RequestRefused && error.status === 401;
        setList((before) => ({ ...before, problem: sentenceOf(error), isStranger }));
      }
    },
    [query],
  );
  const refresh = useCallback(() => show(0), [show]);
  const more = useCallback(() => show(1), [show]);

  useEffect(() => {
    void refresh();
    // Chats go on while nobody looks, and others may answer for them.
    const timer = setInterval(() => void refresh(), REFRESH_MILLISECONDS);
    const forget = whenBack(() => void refresh());
    return () => {
      clearInterval(timer);
      forget();
    };
  }, [refresh]);

  return { ...list, refresh, more };
}

export type Chats = ReturnType<typeof useChats>;
