// Runs where audio is made, as a file of its own, and imports nothing: a page with
// `script-src 'self'` may load it.

declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new (options: never) => object): void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

/** What a playback is made with. */
export interface PlaybackOptions {
  /** Samples per second of what is played. */
  readonly processorOptions: { readonly rate: number };
}

/** What a playback is told: PCM16 to play after what waits, or to be silent at once. */
export type PlaybackOrder = { readonly samples: ArrayBuffer } | { readonly silence: true };

/** What a playback says now and then: how loud it is, from 0 to 1, and the seconds that wait. */
export interface Played {
  readonly level: number;
  readonly waiting: number;
}

const REPORT_EVERY = 0.04;

/** Plays PCM16 in the order in which it comes. */
export class Playback extends AudioWorkletProcessor {
  readonly #rate: number;
  readonly #step: number;
  #queue: Int16Array[] = [];
  /** Where in the first of the queue the next sample is, between two of its own perhaps. */
  #at = 0;
  #squares = 0;
  #made = 0;
  #isIdle = true;

  constructor({ processorOptions: { rate } }: PlaybackOptions) {
    super();
    this.#rate = rate;
    this.#step = rate / sampleRate;
    this.port.onmessage = ({ data }: MessageEvent<PlaybackOrder>) => {
      if ("samples" in data) {
        this.#queue.push(new Int16Array(data.samples));
        this.#isIdle = false;
      } else this.#silence();
    };
  }

  process(_: unknown, [output]: readonly Float32Array[][]): boolean {
    const [first, ...others] = output ?? [];
    if (first === undefined) return true;
    for (let at = 0; at < first.length; at += 1) {
      const sample = this.#next();
      first[at] = sample;
      this.#squares += sample * sample;
    }
    for (const other of others) other.set(first);
    this.#made += first.length;
    if (!this.#isIdle && this.#made >= REPORT_EVERY * sampleRate) this.#report();
    return true;
  }

  /** The sample at the next moment of the output, between two of what is played. */
  #next(): number {
    let [block] = this.#queue;
    while (block !== undefined && this.#at >= block.length) {
      this.#at -= block.length;
      this.#queue.shift();
      [block] = this.#queue;
    }
    if (block === undefined) {
      this.#at = 0;
      return 0;
    }
    const whole = Math.floor(this.#at);
    const before = block[whole] ?? 0;
    const after = block[whole + 1] ?? this.#queue[1]?.[0] ?? before;
    const sample = before + (after - before) * (this.#at - whole);
    this.#at += this.#step;
    return sample / 0x8000;
  }

  #silence(): void {
    this.#queue = [];
    this.#at = 0;
    this.#report();
  }

  #report(): void {
    const level = this.#made > 0 ? Math.sqrt(this.#squares / this.#made) : 0;
    const left = this.#queue.reduce((sum, block) => sum + block.length, 0) - this.#at;
    const waiting = Math.max(0, left) / this.#rate;
    this.#isIdle = waiting === 0;
    this.port.postMessage({ level: this.#isIdle ? 0 : level, waiting } satisfies Played);
    this.#squares = 0;
    this.#made = 0;
  }
}

registerProcessor("sluicegate-playback", Playback);
