import { useCallback, useEffect, useRef, useState } from "react";
import { RequestRefused } from "sluicegate";
import { type ChatPage, type ChatSummary, errorMessage, listChats } from "../api.ts";
import { onPageVisible } from "../page-visibility.ts";

const REFRESH_MILLISECONDS = 30_000;

interface ChatList {
  readonly chats: readonly ChatSummary[];
  readonly next: string | null;
  readonly problem?: string;
  /** Whether the server requires authentication. */
  readonly isUnauthenticated?: boolean;
}

/** Load the list from the beginning: at least `count` chats, and `morePages` further pages. */
async function load(query: string, count: number, morePages: number): Promise<ChatPage> {
  let list = await listChats(query);
  for (let left = morePages; list.next !== null && (list.chats.length < count || left > 0); ) {
    if (list.chats.length >= count) left -= 1;
    const page = await listChats(query, list.next);
    list = { chats: [...list.chats, ...page.chats], next: page.next };
  }
  return list;
}

/** The list of chats, refreshed periodically and when the page becomes visible. */
export function useChats(query: string) {
  const [list, setList] = useState<ChatList>({ chats: [], next: null });
  const latestRequest = useRef(0);
  const loaded = useRef({ query, count: 0 });

  const loadList = useCallback(
    async (morePages: number) => {
      const request = ++latestRequest.current;
      const count = loaded.current.query === query ? loaded.current.count : 0;
      try {
        const page = await load(query, count, morePages);
        // The response to an older request must not replace a newer one.
        if (request !== latestRequest.current) return;
        // Chats may have been deleted; the next refresh must not load more than this.
        loaded.current = { query, count: morePages > 0 || count > 0 ? page.chats.length : 0 };
        setList(page);
      } catch (error) {
        if (request !== latestRequest.current) return;
        const isUnauthenticated = error instanceof RequestRefused && error.status === 401;
        setList((before) => ({ ...before, problem: errorMessage(error), isUnauthenticated }));
      }
    },
    [query],
  );
  const refresh = useCallback(() => loadList(0), [loadList]);
  const loadMore = useCallback(() => loadList(1), [loadList]);

  useEffect(() => {
    void refresh();
    // Turns continue without this page, and approvals may be decided elsewhere.
    const timer = setInterval(() => void refresh(), REFRESH_MILLISECONDS);
    const removeListener = onPageVisible(() => void refresh());
    return () => {
      clearInterval(timer);
      removeListener();
    };
  }, [refresh]);

  return { ...list, refresh, loadMore };
}

export type Chats = ReturnType<typeof useChats>;
