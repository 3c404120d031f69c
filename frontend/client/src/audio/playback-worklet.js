// Runs in the AudioWorkletGlobalScope. It is a file of its own without imports, so that a page with
// `script-src 'self'` may load it, from the sources and from the package.

/**
 * @typedef {import("./devices.ts").PlaybackOptions} PlaybackOptions
 * @typedef {import("./devices.ts").PlaybackCommand} PlaybackCommand
 * @typedef {import("./devices.ts").PlaybackProgress} PlaybackProgress
 */

/** Seconds between two progress messages. */
const REPORT_INTERVAL = 0.04;

/** Plays a queue of PCM16 blocks. */
export class Playback extends AudioWorkletProcessor {
  #rate;
  #step;
  /** @type {Int16Array[]} */
  #queue = [];
  // The fractional position of the next sample in the first block of the queue.
  #position = 0;
  #squares = 0;
  #frames = 0;
  #isIdle = true;

  /** @param {PlaybackOptions} options */
  constructor({ processorOptions: { rate } }) {
    super();
    this.#rate = rate;
    this.#step = rate / sampleRate;
    /** @param {MessageEvent<PlaybackCommand>} event */
    this.port.onmessage = ({ data }) => {
      if ("samples" in data) {
        this.#queue.push(new Int16Array(data.samples));
        this.#isIdle = false;
      } else this.#clear();
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
    for (let index = 0; index < first.length; index += 1) {
      const sample = this.#next();
      first[index] = sample;
      this.#squares += sample * sample;
    }
    for (const other of others) other.set(first);
    this.#frames += first.length;
    if (!this.#isIdle && this.#frames >= REPORT_INTERVAL * sampleRate) this.#report();
    return true;
  }

  /**
   * The next output sample, interpolated between two samples of the queue.
   *
   * @returns {number}
   */
  #next() {
    let [block] = this.#queue;
    while (block !== undefined && this.#position >= block.length) {
      this.#position -= block.length;
      this.#queue.shift();
      [block] = this.#queue;
    }
    if (block === undefined) {
      this.#position = 0;
      return 0;
    }
    const whole = Math.floor(this.#position);
    const before = block[whole] ?? 0;
    const after = block[whole + 1] ?? this.#queue[1]?.[0] ?? before;
    const sample = before + (after - before) * (this.#position - whole);
    this.#position += this.#step;
    return sample / 0x8000;
  }

  #clear() {
    this.#queue = [];
    this.#position = 0;
    this.#report();
  }

  #report() {
    const level = this.#frames > 0 ? Math.sqrt(this.#squares / this.#frames) : 0;
    const remaining = this.#queue.reduce((sum, block) => sum + block.length, 0) - this.#position;
    const queued = Math.max(0, remaining) / this.#rate;
    this.#isIdle = queued === 0;
    /** @type {PlaybackProgress} */
    const progress = { level: this.#isIdle ? 0 : level, queued };
    this.port.postMessage(progress);
    this.#squares = 0;
    this.#frames = 0;
  }
}

registerProcessor("sluicegate-playback", Playback);
