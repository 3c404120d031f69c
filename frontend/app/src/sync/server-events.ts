import type { UserEvent } from "sluicegate/events";

export type ServerEventListener = (event: UserEvent) => void;

/** Add a listener; returns a function that removes it. */
export type SubscribeToServerEvents = (listener: ServerEventListener) => () => void;

/** Milliseconds for which the events of one change are collected. */
export const COLLECT_MILLISECONDS = 100;

/**
 * When to load what an event changes, as epoch milliseconds: an approval, for which people wait, at
 * once unless something was loaded a moment before.
 */
export function dueAfter(event: UserEvent, lastLoad: number): number {
  const now = Date.now();
  return event.type === "approval"
    ? Math.max(now, lastLoad + COLLECT_MILLISECONDS)
    : now + COLLECT_MILLISECONDS;
}

/** Whether a chat may have changed. */
export function concernsChat(event: UserEvent, chat: string): boolean {
  // After a gap, events of any chat may be missing.
  return "chatId" in event ? event.chatId === chat : true;
}
