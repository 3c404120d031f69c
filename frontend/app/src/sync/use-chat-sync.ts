import { useEffect, useRef } from "react";
import type { SluiceChat } from "sluicegate/react";
import { isFinal } from "./failed-queries.ts";
import { concernsChat, type SubscribeToServerEvents } from "./server-events.ts";

/** Milliseconds for which the events of one change are collected. */
const COLLECT_MILLISECONDS = 100;
/** Milliseconds after which a chat that could not be loaded is loaded again. */
const RETRY_MILLISECONDS = 2_000;

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
    let isActive = true;
    const synchronizeSoon = (delay = COLLECT_MILLISECONDS) => {
      if (isBusy || !isActive) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        isStale.current = false;
        // No other event need follow the one whose change could not be shown.
        const tryAgain = () => {
          isStale.current = true;
          synchronizeSoon(RETRY_MILLISECONDS);
        };
        synchronize().then(
          (isShown) => !isShown && tryAgain(),
          (error: unknown) => !isFinal(error) && tryAgain(),
        );
      }, delay);
    };
    if (isStale.current) synchronizeSoon();
    const unsubscribe = subscribe((event) => {
      if (!concernsChat(event, id)) return;
      isStale.current = true;
      synchronizeSoon();
    });
    return () => {
      isActive = false;
      clearTimeout(timer);
      unsubscribe();
    };
  }, [id, isBusy, subscribe, synchronize]);
}
