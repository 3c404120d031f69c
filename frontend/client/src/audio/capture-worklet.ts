// Runs where audio is made, as a file of its own, and imports nothing: a page with
// `script-src 'self'` may load it.

declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new (options: never) => object): void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}

/** What a capture is made with. */
export interface CaptureOptions {
  readonly processorOptions: {
    /** Samples per second that are wanted, whatever the device gives. */
    readonly rate: number;
    /** Samples of one block. */
    readonly block: number;
  };
}

/** What a capture says: a block of PCM16, and how loud it is, from 0 to 1. */
export interface Captured {
  readonly samples: ArrayBuffer;
  readonly level: number;
}

/** Turns what the microphone gives into blocks of PCM16 at the wanted rate, mono. */
export class Capture extends AudioWorkletProcessor {
  readonly #step: number;
  readonly #size: number;
  #block: Int16Array<ArrayBuffer>;
  #filled = 0;
  #squares = 0;
  /** Of the sample that is being made: what came of it so far. */
  #sum = 0;
  #count = 0;
  #phase = 0;

  constructor({ processorOptions: { rate, block } }: CaptureOptions) {
    super();
    this.#step = sampleRate / rate;
    this.#size = block;
    this.#block = new Int16Array(block);
  }

  process([input]: readonly (readonly Float32Array[])[]): boolean {
    const [first, ...others] = input ?? [];
    for (let at = 0; at < (first?.length ?? 0); at += 1) {
      let sample = first?.[at] ?? 0;
      for (const other of others) sample += other[at] ?? 0;
      this.#take(sample / (1 + others.length));
    }
    return true;
  }

  /** Average as many samples as make one of the wanted rate. */
  #take(sample: number): void {
    this.#sum += sample;
    this.#count += 1;
    this.#phase += 1;
    while (this.#phase >= this.#step) {
      this.#phase -= this.#step;
      this.#keep(this.#count > 0 ? this.#sum / this.#count : sample);
      this.#sum = 0;
      this.#count = 0;
    }
  }

  #keep(sample: number): void {
    const value = Math.max(-1, Math.min(1, sample));
    this.#squares += value * value;
    this.#block[this.#filled] = Math.round(value * (value < 0 ? 0x8000 : 0x7fff));
    this.#filled += 1;
    if (this.#filled < this.#size) return;
    const level = Math.sqrt(this.#squares / this.#size);
    const samples = this.#block.buffer;
    this.port.postMessage({ samples, level } satisfies Captured, [samples]);
    this.#block = new Int16Array(this.#size);
    this.#filled = 0;
    this.#squares = 0;
  }
}

registerProcessor("sluicegate-capture", Capture);
