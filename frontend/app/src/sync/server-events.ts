import type { UserEvent } from "sluicegate/events";

export type ServerEventListener = (event: UserEvent) => void;

/** Add a listener; returns a function that removes it. */
export type SubscribeToServerEvents = (listener: ServerEventListener) => () => void;

/** Whether a chat may have changed. */
export function concernsChat(event: UserEvent, chat: string): boolean {
  // After a gap, events of any chat may be missing.
  return "chatId" in event ? event.chatId === chat : true;
}
