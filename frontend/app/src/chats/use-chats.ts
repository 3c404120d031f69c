import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { RequestRefused } from "sluicegate";
import { listChats } from "../api.ts";
import { errorMessage } from "../error-message.ts";
import { useLastQueryError } from "../use-last-query-error.ts";

/** Turns continue without this page, and approvals may be decided elsewhere. */
const REFRESH_MILLISECONDS = 30_000;

export const CHATS_KEY = "chats";

/** The list of chats, refreshed periodically and when the page becomes visible. */
export function useChats(query: string) {
  const client = useQueryClient();
  const list = useInfiniteQuery({
    queryKey: [CHATS_KEY, query],
    queryFn: ({ pageParam }) => listChats(query, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MILLISECONDS,
    refetchOnWindowFocus: "always",
  });
  const { data, hasNextPage, fetchNextPage } = list;
  const error = useLastQueryError(list);
  const refresh = useCallback(
    () => void client.invalidateQueries({ queryKey: [CHATS_KEY] }),
    [client],
  );
  return {
    chats: data?.pages.flatMap(({ chats }) => chats) ?? [],
    /** Whether the list is loaded and there is no chat. */
    isEmpty: error === null && data?.pages[0]?.chats.length === 0,
    hasMore: hasNextPage,
    problem: error === null ? undefined : errorMessage(error),
    /** Whether the server requires authentication. */
    isUnauthenticated: error instanceof RequestRefused && error.status === 401,
    refresh,
    loadMore: fetchNextPage,
  };
}

export type Chats = ReturnType<typeof useChats>;
