import type { PlaybackOptions, PlaybackOrder, Played } from "./worklet-messages.ts";

/** The playback as a file of its own, which a page with `script-src 'self'` may load. */
export const PLAYBACK_WORKLET: URL = new URL("./playback-worklet.js", import.meta.url);

export interface SpeakerOptions {
  /** Samples per second of what is played. */
  readonly rate: number;
  readonly worklet: URL | string;
  readonly played: (played: Played) => void;
}

/** An open way to the loudspeaker. */
export class Speaker {
  readonly #context: AudioContext;
  readonly #node: AudioWorkletNode;

  private constructor(context: AudioContext, node: AudioWorkletNode) {
    this.#context = context;
    this.#node = node;
  }

  static async open({ rate, worklet, played }: SpeakerOptions): Promise<Speaker> {
    const context = new AudioContext({ sampleRate: rate });
    try {
      await context.audioWorklet.addModule(worklet);
      const node = new AudioWorkletNode(context, "sluicegate-playback", {
        numberOfInputs: 0,
        outputChannelCount: [1],
        ...({ processorOptions: { rate } } satisfies PlaybackOptions),
      });
      node.port.onmessage = ({ data }: MessageEvent<Played>) => played(data);
      node.connect(context.destination);
      await context.resume();
      return new Speaker(context, node);
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  /** Where to listen in, for a meter. */
  get output(): AudioNode {
    return this.#node;
  }

  /** Play PCM16 after what waits already; the buffer is given away. */
  play(samples: ArrayBuffer): void {
    this.#node.port.postMessage({ samples } satisfies PlaybackOrder, [samples]);
  }

  /** Play nothing of what waits any more. */
  silence(): void {
    this.#node.port.postMessage({ silence: true } satisfies PlaybackOrder);
  }

  async close(): Promise<void> {
    await this.#context.close();
  }
}
