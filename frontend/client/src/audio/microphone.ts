import type { Captured, CaptureOptions } from "./worklet-messages.ts";

/** The capture as a file of its own, which a page with `script-src 'self'` may load. */
export const CAPTURE_WORKLET: URL = new URL("./capture-worklet.js", import.meta.url);

/** Milliseconds of audio in one block. */
const BLOCK = 40;

export interface MicrophoneOptions {
  /** Samples per second that are wanted. */
  readonly rate: number;
  readonly worklet: URL | string;
  /** What is asked of the device, beside one channel without echo. */
  readonly constraints?: MediaTrackConstraints | undefined;
  readonly captured: (captured: Captured) => void;
}

/** A context at the rate, where the browser can connect a microphone to one. */
function contextAt(sampleRate: number, stream: MediaStream): [AudioContext, AudioNode] {
  const wished = new AudioContext({ sampleRate });
  try {
    return [wished, wished.createMediaStreamSource(stream)];
  } catch {
    // Firefox connects no device of another rate; the worklet averages.
    void wished.close();
    const own = new AudioContext();
    return [own, own.createMediaStreamSource(stream)];
  }
}

/** An open microphone. */
export class Microphone {
  readonly #stream: MediaStream;
  readonly #context: AudioContext;

  private constructor(stream: MediaStream, context: AudioContext) {
    this.#stream = stream;
    this.#context = context;
  }

  /** Open the microphone; throws what `getUserMedia` throws, such as that it is not allowed. */
  static async open(options: MicrophoneOptions): Promise<Microphone> {
    const { rate, worklet, constraints, captured } = options;
    const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true };
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { ...audio, ...constraints },
    });
    const [context, source] = contextAt(rate, stream);
    const microphone = new Microphone(stream, context);
    try {
      await context.audioWorklet.addModule(worklet);
      const block = Math.round((rate * BLOCK) / 1_000);
      const node = new AudioWorkletNode(context, "sluicegate-capture", {
        numberOfOutputs: 0,
        ...({ processorOptions: { rate, block } } satisfies CaptureOptions),
      });
      node.port.onmessage = ({ data }: MessageEvent<Captured>) => captured(data);
      source.connect(node);
      await context.resume();
      return microphone;
    } catch (error) {
      await microphone.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const track of this.#stream.getTracks()) track.stop();
    await this.#context.close();
  }
}
