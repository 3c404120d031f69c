import { useEffect, useRef } from "react";
import type { SluiceChat } from "sluicegate/react";
import { concernsChat, type SubscribeToServerEvents } from "./server-events.ts";

/** Milliseconds for which the events of one change are collected. */
const COLLECT_MILLISECONDS = 100;

interface ChatSyncOptions {
  readonly id: string;
  readonly chat: Pick<SluiceChat, "synchronize">;
  /** Whether this page changes the chat itself; it is synchronized afterwards. */
  readonly isBusy: boolean;
  readonly subscribe: SubscribeToServerEvents;
}

/** Keep the open chat as the server stores it, wherever it is changed. */
export function useChatSync({ id, chat, isBusy, subscribe }: ChatSyncOptions): void {
  const { synchronize } = chat;
  const isStale = useRef(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const synchronizeSoon = () => {
      if (isBusy) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        isStale.current = false;
        // Without a connection, the event that follows its return synchronizes the chat.
        void synchronize().catch(() => {});
      }, COLLECT_MILLISECONDS);
    };
    if (isStale.current) synchronizeSoon();
    const unsubscribe = subscribe((event) => {
      if (!concernsChat(event, id)) return;
      isStale.current = true;
      synchronizeSoon();
    });
    return () => {
      clearTimeout(timer);
      unsubscribe();
    };
  }, [id, isBusy, subscribe, synchronize]);
}
