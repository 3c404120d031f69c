// Runs in the AudioWorkletGlobalScope. It is a file of its own without imports, so that a page with
// `script-src 'self'` may load it, from the sources and from the package.

/**
 * @typedef {import("./devices.ts").CaptureOptions} CaptureOptions
 * @typedef {import("./devices.ts").Captured} Captured
 */

/** Converts the microphone's signal into blocks of PCM16, mono, at a given rate. */
export class Capture extends AudioWorkletProcessor {
  #step;
  #block;
  #filled = 0;
  #squares = 0;
  // The input samples that are averaged into the next output sample.
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
    for (let index = 0; index < (first?.length ?? 0); index += 1) {
      let sample = first?.[index] ?? 0;
      for (const other of others) sample += other[index] ?? 0;
      this.#resample(sample / (1 + others.length));
    }
    return true;
  }

  /**
   * Average the input samples that fall into one output sample.
   *
   * @param {number} sample
   */
  #resample(sample) {
    this.#sum += sample;
    this.#count += 1;
    this.#phase += 1;
    while (this.#phase >= this.#step) {
      this.#phase -= this.#step;
      this.#append(this.#count > 0 ? this.#sum / this.#count : sample);
      this.#sum = 0;
      this.#count = 0;
    }
  }

  /** @param {number} sample */
  #append(sample) {
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
