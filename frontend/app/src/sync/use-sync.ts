import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { subscribeToEvents, type UserEvent } from "sluicegate/events";
import { API_URL } from "../api.ts";
import { CHATS_KEY } from "../chats/use-chats.ts";
import { onVisibleOrOnline } from "../on-visible-or-online.ts";
import { APPROVALS_KEY } from "./approvals-key.ts";
import { retryFailedQueries } from "./failed-queries.ts";
import { notifyOfApproval } from "./notifications.ts";
import { dueAfter } from "./reload-schedule.ts";

type ServerEventListener = (event: UserEvent) => void;

/** Add a listener; returns a function that removes it. */
export type SubscribeToServerEvents = (listener: ServerEventListener) => () => void;

/** What the events of the server change in the page. */
export interface Sync {
  readonly subscribe: SubscribeToServerEvents;
  /** The chats that were deleted while the page was open. */
  readonly deletedChats: ReadonlySet<string>;
}

/** Keep what the page shows as the server stores it, wherever it is changed. */
export function useSync(openChat: (chat: string) => void): Sync {
  const client = useQueryClient();
  const [deletedChats, setDeletedChats] = useState<ReadonlySet<string>>(new Set());
  const listeners = useRef(new Set<ServerEventListener>());
  const subscribe = useCallback((listener: ServerEventListener) => {
    listeners.current.add(listener);
    return () => listeners.current.delete(listener);
  }, []);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let due = Number.POSITIVE_INFINITY;
    let lastRefresh = 0;
    const refresh = () => {
      due = Number.POSITIVE_INFINITY;
      lastRefresh = Date.now();
      for (const queryKey of [[CHATS_KEY], APPROVALS_KEY]) {
        void client.invalidateQueries({ queryKey });
      }
    };
    const onEvent = (event: UserEvent) => {
      const moment = dueAfter(event, lastRefresh);
      if (moment < due) {
        clearTimeout(timer);
        due = moment;
        timer = setTimeout(refresh, moment - Date.now());
      }
      if (event.type === "chat.deleted") {
        setDeletedChats((before) => new Set(before).add(event.chatId));
      }
      notifyOfApproval(event, openChat);
      for (const listener of listeners.current) listener(event);
    };
    const retry = () => retryFailedQueries(client);
    const unsubscribe = subscribeToEvents({
      api: `${API_URL}/events`,
      onEvent,
      onConnectionChange: (isConnected) => isConnected && retry(),
    });
    const stopWatching = onVisibleOrOnline(retry);
    return () => {
      clearTimeout(timer);
      stopWatching();
      unsubscribe();
    };
  }, [client, openChat]);
  return { subscribe, deletedChats };
}
