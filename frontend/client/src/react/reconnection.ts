import { RequestRefused } from "../refusals.ts";

/** The delays between attempts, in milliseconds. */
export interface ReconnectionDelays {
  /** The delay before the second attempt; it doubles with each further one. */
  readonly initial: number;
  readonly max: number;
  /** No further attempt is made after this time. */
  readonly giveUpAfter: number;
}

const DELAYS: ReconnectionDelays = { initial: 250, max: 5_000, giveUpAfter: 120_000 };

/** A connection that is lost again within this time, in milliseconds, continues the earlier run. */
const STABLE_AFTER = 10_000;

/** The statuses of a server that may answer a later attempt. */
const TEMPORARY_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Whether an error is a lost connection, by the rule of `Chat`. */
export function isConnectionLoss(error: unknown): error is Error {
  if (error instanceof DOMException && error.name === "TimeoutError") return true;
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message);
}

function isTemporary(error: unknown): boolean {
  if (error instanceof RequestRefused) return TEMPORARY_STATUSES.has(error.status);
  return isConnectionLoss(error);
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Repeats an attempt to reach the server until it succeeds, fails for good, or takes too long. */
export class Reconnection {
  /** Resolves to the error of the attempt. */
  readonly #attempt: () => Promise<Error | undefined>;
  readonly #onChange: (isReconnecting: boolean, error?: Error) => void;
  readonly #delays: ReconnectionDelays;
  /** The current run; an attempt of an earlier one is ignored. */
  #run: symbol | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #startedAt = 0;
  #endedAt = 0;
  #attempts = 0;
  #isAttempting = false;

  /**
   * `onChange` is called with true at the start, and with false at the end: with the error if the
   * attempts were given up.
   */
  constructor(
    attempt: () => Promise<void>,
    onChange: (isReconnecting: boolean, error?: Error) => void,
    delays: Partial<ReconnectionDelays> = {},
  ) {
    this.#attempt = () => attempt().then(() => undefined, asError);
    this.#onChange = onChange;
    this.#delays = { ...DELAYS, ...delays };
  }

  /** Start after an error, unless a run is in progress. */
  start(error: Error): void {
    if (this.#run !== undefined) return;
    const now = Date.now();
    if (now - this.#endedAt >= STABLE_AFTER) {
      this.#startedAt = now;
      this.#attempts = 0;
    }
    this.#run = Symbol("run");
    globalThis.addEventListener?.("online", this.#onOnline);
    this.#onChange(true);
    if (this.#attempts === 0) this.#schedule(0);
    else this.#onFailure(error);
  }

  /** Start at the request of a person, with the full time. */
  restart(error: Error): void {
    this.stop();
    this.#endedAt = 0;
    this.start(error);
  }

  /**
   * Attempt again after a run has ended with an error, and replace that error. A new run starts only
   * if the failure is temporary, such as a lost connection or a busy server.
   */
  async repeat(error: Error): Promise<void> {
    const failure = this.#run === undefined ? await this.#attempt() : error;
    if (this.#run !== undefined || isTemporary(failure)) this.restart(error);
    else this.#onChange(false, failure);
  }

  /** End the run without another attempt. */
  stop(): void {
    if (this.#run !== undefined) this.#end();
  }

  readonly #onOnline = (): void => {
    if (!this.#isAttempting) this.#schedule(0);
  };

  #schedule(delay: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#try(), delay);
  }

  async #try(): Promise<void> {
    const run = this.#run;
    this.#attempts += 1;
    this.#isAttempting = true;
    const failure = await this.#attempt();
    if (this.#run !== run) return;
    this.#isAttempting = false;
    if (failure === undefined) this.#end();
    else this.#onFailure(failure);
  }

  #onFailure(error: Error): void {
    const { initial, max, giveUpAfter } = this.#delays;
    if (!isTemporary(error) || Date.now() - this.#startedAt >= giveUpAfter) {
      this.#end(error);
      return;
    }
    const delay = Math.min(max, initial * 2 ** (this.#attempts - 1));
    // Jitter, so that the clients of a restarting server do not reconnect at the same time.
    this.#schedule(delay * (0.5 + Math.random() / 2));
  }

  #end(error?: Error): void {
    this.#run = undefined;
    this.#isAttempting = false;
    this.#endedAt = Date.now();
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("online", this.#onOnline);
    this.#onChange(false, error);
  }
}
