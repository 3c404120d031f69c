/** A frame that belongs to no request, as the client may send it on `/live`. */
export type LiveFrame =
  | { readonly type: "activity-start" }
  | { readonly type: "activity-end" }
  | { readonly type: "interrupt" }
  /** A picture for the model; `data` is base64. */
  | { readonly type: "image"; readonly mediaType: string; readonly data: string };

/** What a live connection tells, by the name of its frame. */
export interface LiveEvents {
  /** Audio may flow; rates in hertz. */
  ready: { readonly inputRate: number; readonly outputRate: number };
  /** What was said, by whom; not final, it is told again with more. */
  transcript: {
    readonly messageId: string;
    readonly role: "user" | "assistant";
    readonly text: string;
    readonly final: boolean;
  };
  /** A spoken message of the user is answered; a resume brings the answer. */
  turn: { readonly messageId: string; readonly userMessageId: string };
  /** The state of an approval has changed, wherever it was answered. */
  approval: { readonly approvalId: string; readonly state: string; readonly reason?: string };
  /** The agent was interrupted: what it has still to say is not to be heard. */
  interrupted: object;
  /** The agent has said what it had to say. */
  "turn-complete": object;
  /** The server will end the connection soon; it is made again by itself. */
  "go-away": object;
  /** PCM16, little-endian, mono, at the `outputRate` of `ready`. */
  audio: ArrayBuffer;
  /** A frame was refused, or the live run has ended; the connection is sought again if it goes. */
  error: Error;
  /** Whether the connection is there. */
  connection: "open" | "lost";
  /** The connection is refused or cannot be made, and is not sought any more. */
  refused: Error;
}

const NAMES: ReadonlySet<string> = new Set<keyof LiveEvents>([
  "ready",
  "transcript",
  "turn",
  "approval",
  "interrupted",
  "turn-complete",
  "go-away",
]);

/** Whether a live frame is one of those that are told as they came. */
export function isLiveEvent(type: unknown): type is keyof LiveEvents {
  return typeof type === "string" && NAMES.has(type);
}

type Listener<Told> = (told: Told) => void;

/** Who listens to what. */
export class Listeners {
  readonly #listeners = new Map<string, Set<Listener<never>>>();

  /** Listen until the returned function is called. */
  on<Name extends keyof LiveEvents>(name: Name, listener: Listener<LiveEvents[Name]>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener as Listener<never>));
    return () => listeners.delete(listener as Listener<never>);
  }

  tell<Name extends keyof LiveEvents>(name: Name, told: LiveEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) listener(told as never);
  }
}
