// Runs where audio is made, as a file of its own that imports nothing: a page with
// `script-src 'self'` may load it, from the sources as from the package.

/**
 * @typedef {import("./worklet-messages.ts").CaptureOptions} CaptureOptions
 * @typedef {import("./worklet-messages.ts").Captured} Captured
 */

/** Turns what the microphone gives into blocks of PCM16 at the wanted rate, mono. */
export class Capture extends AudioWorkletProcessor {
  #step;
  #block;
  #filled = 0;
  #squares = 0;
  // Of the sample that is being made: what came of it so far.
  #sum = 0;
  #count = 0;
  #phase = 0;

  /** @param {CaptureOptions} options */
  constructor({ processorOptions: { rate, block } }) {
    super();
    this.#step = sampleRate / rate;
    this.#block = new Int16Array(block);
  }

  /**
   * @param {readonly (readonly Float32Array[])[]} inputs
   * @returns {boolean}
   */
  process([input]) {
    const [first, ...others] = input ?? [];
    for (let at = 0; at < (first?.length ?? 0); at += 1) {
      let sample = first?.[at] ?? 0;
      for (const other of others) sample += other[at] ?? 0;
      this.#take(sample / (1 + others.length));
    }
    return true;
  }

  /**
   * Average as many samples as make one of the wanted rate.
   *
   * @param {number} sample
   */
  #take(sample) {
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

  /** @param {number} sample */
  #keep(sample) {
    const value = Math.max(-1, Math.min(1, sample));
    const { length } = this.#block;
    this.#squares += value * value;
    this.#block[this.#filled] = Math.round(value * (value < 0 ? 0x8000 : 0x7fff));
    this.#filled += 1;
    if (this.#filled < length) return;
    const level = Math.sqrt(this.#squares / length);
    const samples = this.#block.buffer;
    /** @type {Captured} */
    const captured = { samples, level };
    this.port.postMessage(captured, [samples]);
    this.#block = new Int16Array(length);
    this.#filled = 0;
    this.#squares = 0;
  }
}

registerProcessor("sluicegate-capture", Capture);
