/** A frame that belongs to no request, as the client may send it on `/live`. */
export type LiveFrame =
  | { readonly type: "activity-start" }
  | { readonly type: "activity-end" }
  | { readonly type: "interrupt" }
  /** An image for the model; `data` is base64. */
  | { readonly type: "image"; readonly mediaType: string; readonly data: string };

/** The events of a live connection, by name. */
export interface LiveEvents {
  /** Audio may be sent and received; sample rates in hertz. */
  ready: { readonly inputRate: number; readonly outputRate: number };
  /** A transcript of speech; one that is not `final` is replaced by the next one. */
  transcript: {
    readonly messageId: string;
    readonly role: "user" | "assistant";
    readonly text: string;
    readonly final: boolean;
  };
  /** A spoken user message is being answered; a resume with `messageId` streams the answer. */
  turn: { readonly messageId: string; readonly userMessageId: string };
  /** The state of an approval has changed, in any client. */
  approval: { readonly approvalId: string; readonly state: string; readonly reason?: string };
  /** The agent was interrupted; audio that is still queued is not to be played. */
  interrupted: object;
  /** The agent has finished speaking. */
  "turn-complete": object;
  /** The server will close the connection soon; the transport reconnects. */
  "go-away": object;
  /** PCM16, little-endian, mono, at the `outputRate` of `ready`. */
  audio: ArrayBuffer;
  /** A frame was refused, or the live run has ended; a lost connection is still reopened. */
  error: Error;
  /** The state of the connection. */
  connection: "open" | "lost";
  /** The connection was refused or could not be opened, and the transport does not reconnect. */
  refused: Error;
}

const SERVER_EVENTS: ReadonlySet<string> = new Set<keyof LiveEvents>([
  "ready",
  "transcript",
  "turn",
  "approval",
  "interrupted",
  "turn-complete",
  "go-away",
]);

/** Whether a live frame is emitted as an event of the same name. */
export function isServerEvent(type: unknown): type is keyof LiveEvents {
  return typeof type === "string" && SERVER_EVENTS.has(type);
}

type Listener<Event> = (event: Event) => void;

/** A typed event emitter for `LiveEvents`. */
export class LiveEventEmitter {
  readonly #listeners = new Map<string, Set<Listener<never>>>();

  /** Add a listener; returns a function that removes it. */
  on<Name extends keyof LiveEvents>(name: Name, listener: Listener<LiveEvents[Name]>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener as Listener<never>));
    return () => listeners.delete(listener as Listener<never>);
  }

  emit<Name extends keyof LiveEvents>(name: Name, event: LiveEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) listener(event as never);
  }
}
