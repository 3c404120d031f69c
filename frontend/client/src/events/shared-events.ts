import {
  type EventConnectionListener,
  type EventConnectionOptions,
  stayConnected,
} from "./event-connection.ts";
import { type IdentifiedEvent, isAfter } from "./user-events.ts";

/** How many events a leader keeps for tabs that have missed some. */
const KEPT = 500;

type Message =
  /** From the leader: an event for every tab. */
  | ({ readonly kind: "event" } & IdentifiedEvent)
  | { readonly kind: "connection"; readonly isConnected: boolean }
  /** From a tab that has the events up to `after`. */
  | { readonly kind: "hello"; readonly tab: string; readonly after: string | undefined }
  /** From the leader, for one tab. */
  | { readonly kind: "missed"; readonly tab: string; readonly events: readonly IdentifiedEvent[] };

/**
 * The events of a user in every tab of a browser over one connection.
 *
 * The tab that holds the Web Lock `name` is connected and repeats each event on a BroadcastChannel.
 * When it closes, the browser gives the lock to the next tab, which resumes after the last event
 * that it has itself; the others ignore what they have seen.
 *
 * Rejects with `RequestRefused` if the server refuses the connection for good.
 */
export async function shareEvents(
  name: string,
  options: EventConnectionOptions,
  { onEvent, onConnectionChange }: EventConnectionListener,
  signal: AbortSignal,
): Promise<void> {
  const channel = new BroadcastChannel(name);
  const tab = crypto.randomUUID();
  const post = (message: Message) => channel.postMessage(message);
  let last: string | undefined;
  let recent: RecentEvents | undefined;

  const receive = (received: IdentifiedEvent) => {
    if (received.event.type !== "ready" && !isAfter(received.id, last)) return;
    if (isAfter(received.id, last)) last = received.id;
    onEvent(received);
  };
  const greet = () => {
    if (!recent) post({ kind: "hello", tab, after: last });
  };
  channel.onmessage = ({ data: message }: MessageEvent<Message>) => {
    if (recent && message.kind === "hello") {
      const events = recent.after(message.after);
      if (events.length > 0) post({ kind: "missed", tab: message.tab, events });
    } else if (!recent && message.kind === "event") {
      // A new leader has read from its own position on, which may be after that of this tab.
      if (message.event.type === "ready") greet();
      else receive(message);
    } else if (!recent && message.kind === "missed" && message.tab === tab) {
      for (const received of message.events) receive(received);
    } else if (!recent && message.kind === "connection") {
      onConnectionChange(message.isConnected);
    }
  };
  const onVisible = () => {
    // Messages to a tab that was frozen may be lost.
    if (document.visibilityState === "visible") greet();
  };
  globalThis.document?.addEventListener("visibilitychange", onVisible);

  const lead = async () => {
    await stayConnected(
      options,
      last,
      {
        onEvent: (received) => {
          recent ??= new RecentEvents(last ?? received.id);
          recent.add(received);
          receive(received);
          post({ kind: "event", ...received });
        },
        onConnectionChange: (isConnected) => {
          onConnectionChange(isConnected);
          post({ kind: "connection", isConnected });
        },
      },
      signal,
    );
  };
  greet();
  try {
    await navigator.locks.request(name, { signal }, lead);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    globalThis.document?.removeEventListener("visibilitychange", onVisible);
    channel.close();
  }
}

/** The latest events of a leader; it has every event after the position `start`. */
class RecentEvents {
  #start: string;
  #latest: string;
  #events: IdentifiedEvent[] = [];

  constructor(start: string) {
    this.#start = start;
    this.#latest = start;
  }

  add(received: IdentifiedEvent): void {
    if (isAfter(received.id, this.#latest)) this.#latest = received.id;
    if (received.event.type === "ready") return;
    this.#events.push(received);
    const forgotten = this.#events.length > KEPT ? this.#events.shift() : undefined;
    if (forgotten) this.#start = forgotten.id;
  }

  /** What a tab has missed: `ready` for one that begins, `reset` for one that is too far behind. */
  after(id: string | undefined): readonly IdentifiedEvent[] {
    if (id === undefined) return [{ id: this.#latest, event: { type: "ready" } }];
    if (isAfter(this.#start, id)) return [{ id: this.#latest, event: { type: "reset" } }];
    return this.#events.filter((received) => isAfter(received.id, id));
  }
}
