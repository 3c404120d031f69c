import { type HeaderSource, resolveHeaders } from "../chat-api.ts";
import { type RequestRefused, refusalFromResponse } from "../refusals.ts";
import type { IdentifiedEvent, UserEvent } from "./user-events.ts";

/** The options of a connection to the events route. */
export interface EventConnectionOptions {
  /** The URL of the events route, such as `/api/events`. */
  readonly api: string;
  readonly headers?: HeaderSource | undefined;
  readonly credentials?: RequestCredentials | undefined;
  readonly fetch?: typeof fetch | undefined;
}

export interface EventConnectionListener {
  readonly onEvent: (received: IdentifiedEvent) => void;
  readonly onConnectionChange: (isConnected: boolean) => void;
}

/** Milliseconds of silence after which a connection is dead; the server is never silent for half. */
const SILENCE_LIMIT = 20_000;

const MAX_PAUSE = 30_000;

/** The 4xx statuses that may pass; any other 4xx status ends the attempts. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429]);

/**
 * Stay connected until the signal aborts: reconnect after a pause that grows and varies, and resume
 * after the last event.
 *
 * Rejects with `RequestRefused` if the server refuses the connection for good.
 */
export async function stayConnected(
  options: EventConnectionOptions,
  lastId: string | undefined,
  { onEvent, onConnectionChange }: EventConnectionListener,
  signal: AbortSignal,
): Promise<void> {
  let after = lastId;
  let retry = 1000;
  let failures = 0;
  while (!signal.aborted) {
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    signal.addEventListener("abort", abort);
    const silence = startTimer(abort);
    try {
      const body = await openStream(options, after, attempt.signal);
      for await (const field of readFields(body, silence.restart)) {
        if (field.retry !== undefined) retry = field.retry;
        if (field.received === undefined) continue;
        if (failures >= 0) onConnectionChange(true);
        failures = -1;
        after = field.received.id;
        onEvent(field.received);
      }
    } catch (error) {
      if (isFinal(error)) throw error;
    } finally {
      silence.stop();
      signal.removeEventListener("abort", abort);
      attempt.abort();
    }
    failures += 1;
    if (signal.aborted) return;
    onConnectionChange(false);
    // Tabs and devices that lost the same server do not come back at the same moment.
    await pause(Math.min(retry * 2 ** failures, MAX_PAUSE) * (0.5 + Math.random()), signal);
  }
}

async function openStream(
  { api, headers, credentials, fetch = globalThis.fetch }: EventConnectionOptions,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  // In the query, since a header of this name is not allowed from another origin.
  const separator = api.includes("?") ? "&" : "?";
  const url = after === undefined ? api : `${api}${separator}after=${encodeURIComponent(after)}`;
  const response = await fetch(url, {
    headers: await resolveHeaders(headers),
    cache: "no-store",
    signal,
    ...(credentials && { credentials }),
  });
  if (response.ok && response.body) return response.body;
  throw await refusalFromResponse(response, "The events could not be read.");
}

function isFinal(error: unknown): error is RequestRefused {
  const status = error instanceof Error && "status" in error ? Number(error.status) : 500;
  return status < 500 && !TRANSIENT.has(status);
}

interface Field {
  readonly retry?: number;
  readonly received?: IdentifiedEvent;
}

/** Read the events of a response; `onActivity` is called for comments, too. */
async function* readFields(
  body: ReadableStream<Uint8Array>,
  onActivity: () => void,
): AsyncGenerator<Field> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let buffered = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onActivity();
    const blocks = (buffered + decoder.decode(value, { stream: true })).split("\n\n");
    buffered = blocks.pop() ?? "";
    for (const block of blocks) yield parseBlock(block);
  }
}

function parseBlock(block: string): Field {
  const fields = new Map(
    block.split("\n").map((line) => {
      const [name = "", ...rest] = line.split(": ");
      return [name, rest.join(": ")];
    }),
  );
  const retry = fields.get("retry");
  const id = fields.get("id");
  const data = fields.get("data");
  if (id !== undefined && data !== undefined) {
    return { received: { id, event: JSON.parse(data) as UserEvent } };
  }
  return retry === undefined ? {} : { retry: Number(retry) };
}

/** A timer that calls back after too long a silence. */
function startTimer(onSilence: () => void) {
  let timer = setTimeout(onSilence, SILENCE_LIMIT);
  const stop = () => clearTimeout(timer);
  const restart = () => {
    stop();
    timer = setTimeout(onSilence, SILENCE_LIMIT);
  };
  return { restart, stop };
}

/** Wait until the time is over, the network is back, or the signal aborts. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      globalThis.removeEventListener?.("online", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
    globalThis.addEventListener?.("online", end);
  });
}
