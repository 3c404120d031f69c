import { resolveHeaders } from "../chat-api.ts";
import { type EventConnectionOptions, stayConnected } from "./event-connection.ts";
import { shareEvents } from "./shared-events.ts";
import type { UserEvent } from "./user-events.ts";

/** The options of `subscribeToEvents`. */
export interface SubscribeOptions extends EventConnectionOptions {
  /** Called for each event; load what the page shows at `ready`, and again at `reset`. */
  readonly onEvent: (event: UserEvent) => void;
  /** Called when the connection is lost, and when it is back. */
  readonly onConnectionChange?: ((isConnected: boolean) => void) | undefined;
  /** Called once, with a `RequestRefused`, if the server refuses the connection for good. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Subscribe to what changes for the user in any chat, tab and device; returns a function that ends
 * the subscription.
 *
 * It reconnects by itself and gets what it has missed. The tabs of a browser share one connection,
 * if they have the same URL and credentials and the browser has Web Locks; else each has its own.
 */
export function subscribeToEvents(options: SubscribeOptions): () => void {
  const ending = new AbortController();
  run(options, ending.signal).catch((error: unknown) => {
    if (!ending.signal.aborted) options.onError?.(error);
  });
  return () => ending.abort();
}

async function run(options: SubscribeOptions, signal: AbortSignal): Promise<void> {
  let isConnected: boolean | undefined;
  let hasBegun = false;
  const listener = {
    onEvent: ({ event }: { readonly event: UserEvent }) => {
      // A connection that resumes has missed nothing, so there is nothing to load.
      if (signal.aborted || (hasBegun && event.type === "ready")) return;
      hasBegun = true;
      options.onEvent(event);
    },
    onConnectionChange: (now: boolean) => {
      if (signal.aborted || now === isConnected) return;
      isConnected = now;
      options.onConnectionChange?.(now);
    },
  };
  const canShare = globalThis.navigator?.locks && globalThis.BroadcastChannel && crypto.subtle;
  if (!canShare) return stayConnected(options, undefined, listener, signal);
  return shareEvents(await nameOf(options), options, listener, signal);
}

/** A name that tabs have in common if they have the same URL and credentials. */
async function nameOf({ api, headers, credentials }: EventConnectionOptions): Promise<string> {
  const url = new URL(api, globalThis.location?.href).href;
  const sent = await resolveHeaders(headers);
  const text = JSON.stringify([url, credentials, Object.entries(sent).sort()]);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  return `sluicegate-events-${hex.join("")}`;
}
