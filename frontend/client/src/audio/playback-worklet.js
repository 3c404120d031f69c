// Runs where audio is made, as a file of its own that imports nothing: a page with
// `script-src 'self'` may load it, from the sources as from the package.

/**
 * @typedef {import("./worklet-messages.ts").PlaybackOptions} PlaybackOptions
 * @typedef {import("./worklet-messages.ts").PlaybackOrder} PlaybackOrder
 * @typedef {import("./worklet-messages.ts").Played} Played
 */

/** Seconds between two reports. */
const REPORT_EVERY = 0.04;

/** Plays PCM16 in the order in which it comes. */
export class Playback extends AudioWorkletProcessor {
  #rate;
  #step;
  /** @type {Int16Array[]} */
  #queue = [];
  // Where in the first of the queue the next sample is, between two of its own perhaps.
  #at = 0;
  #squares = 0;
  #made = 0;
  #isIdle = true;

  /** @param {PlaybackOptions} options */
  constructor({ processorOptions: { rate } }) {
    super();
    this.#rate = rate;
    this.#step = rate / sampleRate;
    /** @param {MessageEvent<PlaybackOrder>} order */
    this.port.onmessage = ({ data }) => {
      if ("samples" in data) {
        this.#queue.push(new Int16Array(data.samples));
        this.#isIdle = false;
      } else this.#silence();
    };
  }

  /**
   * @param {unknown} _
   * @param {readonly (readonly Float32Array[])[]} outputs
   * @returns {boolean}
   */
  process(_, [output]) {
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

  /**
   * The sample at the next moment of the output, between two of what is played.
   *
   * @returns {number}
   */
  #next() {
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

  #silence() {
    this.#queue = [];
    this.#at = 0;
    this.#report();
  }

  #report() {
    const level = this.#made > 0 ? Math.sqrt(this.#squares / this.#made) : 0;
    const left = this.#queue.reduce((sum, block) => sum + block.length, 0) - this.#at;
    const waiting = Math.max(0, left) / this.#rate;
    this.#isIdle = waiting === 0;
    /** @type {Played} */
    const played = { level: this.#isIdle ? 0 : level, waiting };
    this.port.postMessage(played);
    this.#squares = 0;
    this.#made = 0;
  }
}

registerProcessor("sluicegate-playback", Playback);
