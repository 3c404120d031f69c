/** The options of the capture worklet. */
export interface CaptureOptions {
  readonly processorOptions: {
    /** The sample rate of the blocks in hertz, independent of that of the device. */
    readonly rate: number;
    /** The number of samples in a block. */
    readonly block: number;
  };
}

/** A message of the capture worklet: a block of PCM16 and its level (RMS), from 0 to 1. */
export interface Captured {
  readonly samples: ArrayBuffer;
  readonly level: number;
}

/** The options of the playback worklet. */
export interface PlaybackOptions {
  /** The sample rate of the blocks in hertz. */
  readonly processorOptions: { readonly rate: number };
}

/** A message to the playback worklet: a block of PCM16 for its queue, or clear the queue. */
export type PlaybackCommand = { readonly samples: ArrayBuffer } | { readonly clear: true };

/** A message of the playback worklet: the level (RMS), from 0 to 1, and the queued seconds. */
export interface PlaybackProgress {
  readonly level: number;
  readonly queued: number;
}

// Files of their own, so that a page with `script-src 'self'` may load them.
export const CAPTURE_WORKLET: URL = new URL("./capture-worklet.js", import.meta.url);
export const PLAYBACK_WORKLET: URL = new URL("./playback-worklet.js", import.meta.url);

/** Milliseconds of audio in a captured block. */
const BLOCK_DURATION = 40;

export interface MicrophoneOptions {
  /** The sample rate of the captured blocks in hertz. */
  readonly rate: number;
  readonly worklet: URL | string;
  /** Constraints in addition to one channel with echo cancellation and noise suppression. */
  readonly constraints?: MediaTrackConstraints | undefined;
  readonly onCapture: (captured: Captured) => void;
}

/** An audio context at the rate, or at the rate of the device if the browser requires that. */
function createInput(sampleRate: number, stream: MediaStream): [AudioContext, AudioNode] {
  const context = new AudioContext({ sampleRate });
  try {
    return [context, context.createMediaStreamSource(stream)];
  } catch {
    // Firefox cannot connect a device with another rate; the capture worklet resamples.
    void context.close();
    const deviceContext = new AudioContext();
    return [deviceContext, deviceContext.createMediaStreamSource(stream)];
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

  /** Open the microphone; rejects with the error of `getUserMedia`, such as `NotAllowedError`. */
  static async open(options: MicrophoneOptions): Promise<Microphone> {
    const { rate, worklet, constraints, onCapture } = options;
    const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true };
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { ...audio, ...constraints },
    });
    const [context, source] = createInput(rate, stream);
    const microphone = new Microphone(stream, context);
    try {
      await context.audioWorklet.addModule(worklet);
      const block = Math.round((rate * BLOCK_DURATION) / 1_000);
      const node = new AudioWorkletNode(context, "sluicegate-capture", {
        numberOfOutputs: 0,
        ...({ processorOptions: { rate, block } } satisfies CaptureOptions),
      });
      node.port.onmessage = ({ data }: MessageEvent<Captured>) => onCapture(data);
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

export interface SpeakerOptions {
  /** The sample rate of the played blocks in hertz. */
  readonly rate: number;
  readonly worklet: URL | string;
  readonly onProgress: (progress: PlaybackProgress) => void;
}

/** An open loudspeaker with a playback queue. */
export class Speaker {
  readonly #context: AudioContext;
  readonly #node: AudioWorkletNode;

  private constructor(context: AudioContext, node: AudioWorkletNode) {
    this.#context = context;
    this.#node = node;
  }

  static async open({ rate, worklet, onProgress }: SpeakerOptions): Promise<Speaker> {
    const context = new AudioContext({ sampleRate: rate });
    try {
      await context.audioWorklet.addModule(worklet);
      const node = new AudioWorkletNode(context, "sluicegate-playback", {
        numberOfInputs: 0,
        outputChannelCount: [1],
        ...({ processorOptions: { rate } } satisfies PlaybackOptions),
      });
      node.port.onmessage = ({ data }: MessageEvent<PlaybackProgress>) => onProgress(data);
      node.connect(context.destination);
      await context.resume();
      return new Speaker(context, node);
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  /** Queue a block of PCM16; the buffer is transferred. */
  play(samples: ArrayBuffer): void {
    this.#node.port.postMessage({ samples } satisfies PlaybackCommand, [samples]);
  }

  /** Clear the queue and become silent immediately. */
  clear(): void {
    this.#node.port.postMessage({ clear: true } satisfies PlaybackCommand);
  }

  async close(): Promise<void> {
    await this.#context.close();
  }
}
