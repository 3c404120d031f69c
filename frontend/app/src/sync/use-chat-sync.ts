import { useEffect, useRef } from "react";
import type { UserEvent } from "sluicegate/events";
import type { SluiceChat } from "sluicegate/react";
import { isFinal } from "./failed-queries.ts";
import { COLLECT_MILLISECONDS, dueAfter } from "./reload-schedule.ts";
import type { SubscribeToServerEvents } from "./use-sync.ts";

/** Milliseconds after which a chat that could not be loaded is loaded again. */
const RETRY_MILLISECONDS = 2_000;

/** Whether a chat may have changed. */
function concernsChat(event: UserEvent, chat: string): boolean {
  // After a gap, events of any chat may be missing.
  return "chatId" in event ? event.chatId === chat : true;
}

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
  /** How many changes are known, and how many of them are shown. */
  const known = useRef(0);
  const shown = useRef(0);
  const lastStart = useRef(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isActive = true;
    let due = Number.POSITIVE_INFINITY;
    /** Synchronize at a moment, unless that is due earlier. */
    const synchronizeAt = (moment: number) => {
      if (isBusy || !isActive || moment >= due) return;
      clearTimeout(timer);
      due = moment;
      timer = setTimeout(() => {
        due = Number.POSITIVE_INFINITY;
        lastStart.current = Date.now();
        const changes = known.current;
        // A failed synchronization is repeated, as no other event may follow. If the page becomes
        // busy meanwhile, the next run of the effect repeats it.
        const end = (isShown: boolean) => {
          if (isShown) shown.current = Math.max(shown.current, changes);
          else synchronizeAt(Date.now() + RETRY_MILLISECONDS);
        };
        synchronize().then(end, (error: unknown) => end(isFinal(error)));
      }, moment - Date.now());
    };
    if (shown.current < known.current) synchronizeAt(Date.now() + COLLECT_MILLISECONDS);
    const unsubscribe = subscribe((event) => {
      if (!concernsChat(event, id)) return;
      known.current += 1;
      synchronizeAt(dueAfter(event, lastStart.current));
    });
    return () => {
      isActive = false;
      clearTimeout(timer);
      unsubscribe();
    };
  }, [id, isBusy, subscribe, synchronize]);
}
