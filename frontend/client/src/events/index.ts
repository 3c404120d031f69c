/**
 * What changes for a user in any chat, over one connection of all tabs.
 * @module sluicegate/events
 */

export type { EventConnectionOptions } from "./event-connection.ts";
export { type SubscribeOptions, subscribeToEvents } from "./subscribe-to-events.ts";
export type { UserEvent } from "./user-events.ts";
