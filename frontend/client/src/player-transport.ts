import type { ChatTransport, UIMessage } from "ai";

type SendOptions<Message extends UIMessage> = Parameters<ChatTransport<Message>["sendMessages"]>[0];
type ResumeOptions = Parameters<ChatTransport<UIMessage>["reconnectToStream"]>[0];
type Chunks = Awaited<ReturnType<ChatTransport<UIMessage>["sendMessages"]>>;

/** What a `PlayerTransport` is made with. */
export interface PlayerOptions {
  /** Leave the recorded pauses between chunks, up to 3 s each. */
  readonly paced?: boolean | undefined;
  /** Called when a chunk may follow, with the milliseconds to wait; instead of a timer. */
  readonly pause?: ((milliseconds: number) => Promise<unknown>) | undefined;
}

interface Body {
  readonly type?: string;
  readonly trigger?: string;
  readonly message?: Message;
  readonly edits?: object;
  readonly remember?: object;
  readonly errorText?: string;
  readonly requestId?: string;
}

interface Message {
  readonly role?: string;
  readonly parts?: readonly Part[];
}

interface Part {
  readonly type?: string;
  readonly toolName?: string;
  readonly toolCallId?: string;
  readonly state?: string;
  readonly providerExecuted?: boolean;
  readonly approval?: {
    readonly id?: string;
    readonly approved?: boolean;
    readonly reason?: string;
  };
  readonly text?: string;
  readonly mediaType?: string;
  readonly output?: unknown;
  readonly errorText?: string;
}

interface Entry {
  readonly turn: number;
  readonly kind: string;
  readonly delta_ms: number;
  readonly body: Body;
}

interface Turn {
  readonly number: number;
  readonly asked: Body;
  readonly chunks: Entry[];
  refusal?: string;
}

const FORMAT = "sluicegate-recording";
const VERSION = 1;
const REDACTED = "[redacted]";
const MOST_PAUSED = 3_000;
const SHOWN = 60;

/**
 * A transport that plays a recording, for a page or a test without a server.
 *
 * Each message that is sent is answered as it was; one that says something else than the recorded
 * one fails with an `Error` that names the first difference, and may be sent again. Every chat id
 * has a place of its own.
 */
export class PlayerTransport<Sent extends UIMessage = UIMessage> implements ChatTransport<Sent> {
  readonly resumeStreamIsReplay = true;
  readonly #turns: readonly Turn[];
  readonly #pause: ((milliseconds: number) => Promise<unknown>) | undefined;
  readonly #played = new Map<string, number>();

  /** Take the text of a recording; throws an `Error` if it is none of this version. */
  constructor(recording: string, options: PlayerOptions = {}) {
    this.#turns = turnsOf(recording);
    this.#pause = options.paced ? (options.pause ?? waiting) : undefined;
  }

  async sendMessages(options: SendOptions<Sent>): Promise<Chunks> {
    const { chatId, messages, trigger, messageId, abortSignal } = options;
    abortSignal?.throwIfAborted();
    const turn = this.#next(chatId, "send");
    if (turn === undefined) {
      const played = this.#played.get(chatId) ?? 0;
      throw new Error(
        `The recording ends after turn ${played}; start a new chat to play it again.`,
      );
    }
    const continued = messages.find(({ id, role }) => role === "assistant" && id === messageId);
    const last = messages.at(-1);
    const message = last?.role === "user" ? last : (continued ?? last);
    const wrong = difference(turn.asked, {
      trigger,
      ...(message && { message: message as Message }),
      ...(options.body as Body | undefined),
    });
    if (wrong !== undefined) {
      throw new Error(`Turn ${turn.number} differs from the recording: ${wrong}.`);
    }
    this.#played.set(chatId, turn.number);
    if (turn.refusal !== undefined) throw new Error(turn.refusal);
    return this.#stream(turn, abortSignal);
  }

  async reconnectToStream(options: ResumeOptions): Promise<Chunks | null> {
    const turn = this.#next(options.chatId, "resume");
    if (turn === undefined) return null;
    this.#played.set(options.chatId, turn.number);
    return this.#stream(turn, undefined);
  }

  /** The next turn of that kind; between two that are sent, others may be left out. */
  #next(chatId: string, kind: string): Turn | undefined {
    const played = this.#played.get(chatId) ?? 0;
    for (const turn of this.#turns) {
      if (turn.number <= played) continue;
      if (turn.asked.type === kind) return turn;
      if (turn.asked.type === "send") return undefined;
    }
    return undefined;
  }

  #stream(turn: Turn, signal: AbortSignal | undefined): Chunks {
    const left = [...turn.chunks];
    const stream = new ReadableStream<unknown>({
      pull: async (controller) => {
        const entry = left.shift();
        if (entry === undefined) {
          controller.close();
          return;
        }
        await this.#pause?.(Math.min(entry.delta_ms, MOST_PAUSED));
        if (signal?.aborted) controller.error(signal.reason);
        else controller.enqueue(structuredClone(entry.body));
      },
    });
    return stream as Chunks;
  }
}

function waiting(milliseconds: number): Promise<void> {
  return new Promise((passed) => setTimeout(passed, milliseconds));
}

function turnsOf(recording: string): Turn[] {
  // What stands behind the last line break was cut while it was written.
  const [first = "", ...lines] = recording.split("\n").slice(0, -1);
  const header = parsed(first, 1) as { format?: string; version?: number };
  if (header.format !== FORMAT || header.version !== VERSION) {
    throw new Error(`This is not a ${FORMAT} of version ${VERSION}.`);
  }
  const turns = new Map<number, Turn>();
  for (const [index, line] of lines.entries()) {
    const entry = parsed(line, index + 2) as Entry;
    const { turn: number, kind, body } = entry;
    if (kind === "request") turns.set(number, { number, asked: body, chunks: [] });
    const turn = turns.get(number);
    if (kind === "chunk") turn?.chunks.push(entry);
    // An error of a live run is no answer to the request before it.
    const refuses = kind === "frame" && body.type === "error" && body.requestId !== "live";
    if (refuses && turn) turn.refusal = body.errorText ?? "";
  }
  return [...turns.values()];
}

function parsed(line: string, number: number): object {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The line is named below.
  }
  throw new Error(`Line ${number} of the recording is not an object in JSON.`);
}

/** The first thing that a request says otherwise than the recorded one, as part of a sentence. */
function difference(asked: Body, posted: Body): string | undefined {
  const recorded = new Map(said(asked));
  const given = new Map(said(posted));
  for (const [what, words] of recorded) {
    if (!given.has(what)) return `${what} is missing, which was ${shown(words)}`;
    const other = given.get(what);
    if (!isSame(words, other)) return `${what} is ${shown(other)} and was ${shown(words)}`;
  }
  for (const [what, words] of given) {
    if (!recorded.has(what)) return `${what} is ${shown(words)} and was not there`;
  }
  return undefined;
}

/** What a server reads of a request. */
function* said(body: Body): Generator<[what: string, words: unknown]> {
  const parts = body.message?.parts ?? [];
  yield ["the message's role", body.message?.role];
  yield ["the trigger", body.trigger ?? "submit-message"];
  if (body.message?.role === "user") {
    const texts = parts.flatMap(({ text }) => (text ? [text] : []));
    yield ["the text", texts.join("\n")];
    const files = parts.filter(({ type }) => type === "file");
    for (const [index, file] of files.entries()) yield [`file ${index + 1}`, file.mediaType];
    return;
  }
  for (const part of parts) yield* answers(part);
  for (const what of ["edits", "remember"] as const) {
    const staged = body[what];
    if (staged && Object.keys(staged).length > 0) yield [`what it says under ${what}`, staged];
  }
}

function* answers(part: Part): Generator<[what: string, words: unknown]> {
  const tool = part.toolName ?? (part.type ?? "").replace(/^tool-/, "");
  const { approval, state, toolCallId } = part;
  if (approval?.approved !== undefined) {
    yield [`the answer to ${tool} (${approval.id})`, approval.approved];
    if (approval.reason !== undefined) {
      yield [`the reason given to ${tool} (${approval.id})`, approval.reason];
    }
  }
  const isOutput = state === "output-available" || state === "output-error";
  if (isOutput && !part.providerExecuted) {
    yield [`the output of ${tool} (${toolCallId})`, part.output ?? part.errorText];
  }
}

/** Whether two values are the same; what was redacted is anything. */
function isSame(recorded: unknown, given: unknown): boolean {
  if (recorded === REDACTED) return true;
  if (typeof recorded !== "object" || typeof given !== "object" || !recorded || !given) {
    return Object.is(recorded, given);
  }
  const keys = Object.keys(recorded);
  return (
    Array.isArray(recorded) === Array.isArray(given) &&
    keys.length === Object.keys(given).length &&
    keys.every(
      (key) =>
        Object.hasOwn(given, key) &&
        isSame((recorded as Record<string, unknown>)[key], (given as Record<string, unknown>)[key]),
    )
  );
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN - 1)}…`;
}
