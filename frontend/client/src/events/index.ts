export type { EventConnectionOptions } from "./event-connection.ts";
export { type SubscribeOptions, subscribeToEvents } from "./subscribe-to-events.ts";
export type { UserEvent } from "./user-events.ts";
