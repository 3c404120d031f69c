import type { ChatTransport, UIMessage } from "ai";
import type {
  ChunkStream,
  ReconnectToStreamOptions,
  SendMessagesOptions,
} from "../ai-transport-types.ts";

/** The options of a `PlayerTransport`. */
export interface PlayerOptions {
  /** Keep the recorded pauses between chunks, up to 3 s each. */
  readonly paced?: boolean | undefined;
  /** Waits for the given milliseconds before a chunk; defaults to a timer. */
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
  readonly request: Body;
  readonly chunks: Entry[];
  refusal?: string;
}

const FORMAT = "sluicegate-recording";
const VERSION = 1;
const REDACTED = "[redacted]";
const MAX_PAUSE = 3_000;
const MAX_LENGTH = 60;

/**
 * A transport that replays a recording, for a page or a test without a server.
 *
 * Each request gets the recorded response. A request that differs from the recorded one rejects with
 * an `Error` that names the first difference, and may be sent again. Each chat id is replayed from
 * the beginning of the recording.
 */
export class PlayerTransport<Sent extends UIMessage = UIMessage> implements ChatTransport<Sent> {
  readonly resumeStreamIsReplay = true;
  readonly #turns: readonly Turn[];
  readonly #pause: ((milliseconds: number) => Promise<unknown>) | undefined;
  readonly #played = new Map<string, number>();

  /** `recording` is JSON Lines; throws an `Error` if it is not a recording of version 1. */
  constructor(recording: string, options: PlayerOptions = {}) {
    this.#turns = parseTurns(recording);
    this.#pause = options.paced ? (options.pause ?? delay) : undefined;
  }

  async sendMessages(options: SendMessagesOptions<Sent>): Promise<ChunkStream> {
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
    const difference = firstDifference(turn.request, {
      trigger,
      ...(message && { message: message as Message }),
      ...(options.body as Body | undefined),
    });
    if (difference !== undefined) {
      throw new Error(`Turn ${turn.number} differs from the recording: ${difference}.`);
    }
    this.#played.set(chatId, turn.number);
    if (turn.refusal !== undefined) throw new Error(turn.refusal);
    return this.#stream(turn, abortSignal);
  }

  async reconnectToStream(options: ReconnectToStreamOptions): Promise<ChunkStream | null> {
    const turn = this.#next(options.chatId, "resume");
    if (turn === undefined) return null;
    this.#played.set(options.chatId, turn.number);
    return this.#stream(turn, undefined);
  }

  /** The next turn of a kind; resumes and stops between two sends may be skipped. */
  #next(chatId: string, kind: string): Turn | undefined {
    const played = this.#played.get(chatId) ?? 0;
    for (const turn of this.#turns) {
      if (turn.number <= played) continue;
      if (turn.request.type === kind) return turn;
      if (turn.request.type === "send") return undefined;
    }
    return undefined;
  }

  #stream(turn: Turn, signal: AbortSignal | undefined): ChunkStream {
    const remaining = [...turn.chunks];
    const stream = new ReadableStream<unknown>({
      pull: async (controller) => {
        const entry = remaining.shift();
        if (entry === undefined) {
          controller.close();
          return;
        }
        await this.#pause?.(Math.min(entry.delta_ms, MAX_PAUSE));
        if (signal?.aborted) controller.error(signal.reason);
        else controller.enqueue(structuredClone(entry.body));
      },
    });
    return stream as ChunkStream;
  }
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function parseTurns(recording: string): Turn[] {
  // A last line without a line break was not written completely.
  const [first = "", ...lines] = recording.split("\n").slice(0, -1);
  const header = parseObject(first, 1) as { format?: string; version?: number };
  if (header.format !== FORMAT || header.version !== VERSION) {
    throw new Error(`This is not a ${FORMAT} of version ${VERSION}.`);
  }
  const turns = new Map<number, Turn>();
  for (const [index, line] of lines.entries()) {
    const entry = parseObject(line, index + 2) as Entry;
    const { turn: number, kind, body } = entry;
    if (kind === "request") turns.set(number, { number, request: body, chunks: [] });
    const turn = turns.get(number);
    if (kind === "chunk") turn?.chunks.push(entry);
    // An error frame of the live run does not belong to a request.
    const isRefusal = kind === "frame" && body.type === "error" && body.requestId !== "live";
    if (isRefusal && turn) turn.refusal = body.errorText ?? "";
  }
  return [...turns.values()];
}

function parseObject(line: string, number: number): object {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The error below names the line.
  }
  throw new Error(`Line ${number} of the recording is not an object in JSON.`);
}

/** The first difference between a recorded and a sent request, as part of a sentence. */
function firstDifference(recordedBody: Body, sentBody: Body): string | undefined {
  const recorded = new Map(comparedValues(recordedBody));
  const sent = new Map(comparedValues(sentBody));
  for (const [name, value] of recorded) {
    if (!sent.has(name)) return `${name} is missing, which was ${formatValue(value)}`;
    const other = sent.get(name);
    if (!isSame(value, other))
      return `${name} is ${formatValue(other)} and was ${formatValue(value)}`;
  }
  for (const [name, value] of sent) {
    if (!recorded.has(name)) return `${name} is ${formatValue(value)} and was not there`;
  }
  return undefined;
}

/** The values of a request that the server reads, by name. */
function* comparedValues(body: Body): Generator<[name: string, value: unknown]> {
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
  for (const part of parts) yield* decisionAndOutput(part);
  for (const property of ["edits", "remember"] as const) {
    const staged = body[property];
    if (staged && Object.keys(staged).length > 0) yield [`what it says under ${property}`, staged];
  }
}

function* decisionAndOutput(part: Part): Generator<[name: string, value: unknown]> {
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

/** Whether two JSON values are equal; a redacted value equals any other. */
function isSame(recorded: unknown, sent: unknown): boolean {
  if (recorded === REDACTED) return true;
  if (typeof recorded !== "object" || typeof sent !== "object" || !recorded || !sent) {
    return Object.is(recorded, sent);
  }
  const keys = Object.keys(recorded);
  return (
    Array.isArray(recorded) === Array.isArray(sent) &&
    keys.length === Object.keys(sent).length &&
    keys.every(
      (key) =>
        Object.hasOwn(sent, key) &&
        isSame((recorded as Record<string, unknown>)[key], (sent as Record<string, unknown>)[key]),
    )
  );
}

function formatValue(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH - 1)}…`;
}
