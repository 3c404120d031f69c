import type { UserEvent } from "sluicegate/events";

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
