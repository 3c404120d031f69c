import type { BidiChatTransport } from "../bidi/bidi-transport.ts";
import type { LiveEvents } from "../bidi/live-events.ts";
import { CAPTURE_WORKLET, Microphone, PLAYBACK_WORKLET, Speaker } from "./devices.ts";
import { type Levels, OFF, SILENT, type VoiceState } from "./voice-state.ts";

/** A spoken user message that is being answered. */
export interface SpokenTurn {
  /** The id of the answer; a resume of this message streams it. */
  readonly messageId: string;
  readonly userMessageId: string;
  /** The transcript so far; it may be empty or incomplete until the final `transcript` event. */
  readonly text: string;
}

/** The methods of a `BidiChatTransport` that a `Voice` uses. */
export type LiveTransport = Pick<
  BidiChatTransport,
  "connect" | "disconnect" | "on" | "sendAudio" | "sendFrame"
>;

/** The URLs of the worklets, if the build of the page has moved them. */
export interface Worklets {
  readonly capture?: URL | string;
  readonly playback?: URL | string;
}

/** The options of `Voice`. */
export interface VoiceOptions {
  /** A transport for `/live`; a function is called on each start. */
  readonly transport: LiveTransport | (() => LiveTransport);
  readonly worklets?: Worklets | (() => Worklets | undefined) | undefined;
  /** Constraints in addition to one channel with echo cancellation and noise suppression. */
  readonly constraints?: MediaTrackConstraints | (() => MediaTrackConstraints | undefined);
  readonly onTranscript?: ((transcript: LiveEvents["transcript"]) => void) | undefined;
  readonly onTurn?: ((turn: SpokenTurn) => void) | undefined;
}

function resolve<Value>(source: Value | (() => Value)): Value {
  return typeof source === "function" ? (source as () => Value)() : source;
}

/** A voice session over a live connection: microphone, loudspeaker and transcripts. */
export class Voice {
  readonly #options: VoiceOptions;
  readonly #listeners = new Set<() => void>();
  readonly #transcripts = new Map<string, string>();
  /** Removes the listeners of the transport and rejects a pending start. */
  readonly #cleanups: (() => void)[] = [];
  #state = OFF;
  #levels = SILENT;
  #transport: LiveTransport | undefined;
  #microphone: Microphone | undefined;
  #speaker: Speaker | undefined;
  /** Whether audio of an answer is being received. */
  #isReceiving = false;
  /** Whether the rest of that audio is discarded after a local interruption. */
  #isDiscarding = false;
  /** Incremented on each start and stop, so that a cancelled start does not continue. */
  #generation = 0;

  constructor(options: VoiceOptions) {
    this.#options = options;
  }

  readonly state = (): VoiceState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get levels(): Levels {
    return this.#levels;
  }

  /**
   * Open the connection, the loudspeaker and the microphone. Call it in response to a user gesture:
   * browsers block audio before the first one.
   *
   * Rejects if the microphone is not permitted or the server refuses the connection.
   */
  readonly start = async (): Promise<void> => {
    if (this.#state.status !== "off") return;
    this.#generation += 1;
    const generation = this.#generation;
    this.#set({ ...OFF, status: "starting" });
    try {
      const { inputRate, outputRate } = await this.#connect();
      await this.#openDevices(inputRate, outputRate, generation);
    } catch (error) {
      if (generation !== this.#generation) return;
      const failure = error instanceof Error ? error : new Error(String(error));
      await this.#end(failure);
      throw failure;
    }
  };

  /** Close the connection and the devices. */
  readonly stop = (): Promise<void> => this.#end(undefined);

  /** Stop sending the microphone's audio, or resume sending it. */
  readonly mute = (isMuted = true): void => {
    this.#set({ isMuted });
    if (isMuted) this.#levels = { ...this.#levels, input: 0 };
  };

  /** Interrupt the agent: silence it immediately and notify the model. */
  readonly interrupt = (): void => {
    this.#isDiscarding = this.#isReceiving;
    this.#speaker?.clear();
    this.#transport?.sendFrame({ type: "interrupt" });
  };

  /** Add the listeners, connect and wait for `ready`. */
  #connect(): Promise<LiveEvents["ready"]> {
    const transport = resolve(this.#options.transport);
    this.#transport = transport;
    return new Promise((onReady, reject) => {
      this.#cleanups.push(
        () => reject(new Error("The voice was stopped.")),
        transport.on("ready", (rates) => {
          onReady(rates);
          this.#set({ error: undefined, isReconnecting: false });
        }),
        transport.on("error", (error) => {
          reject(error);
          this.#set({ error });
        }),
        transport.on("refused", (error) => {
          reject(error);
          if (this.#state.status === "on") void this.#end(error);
        }),
        transport.on("audio", (samples) => this.#play(samples)),
        transport.on("interrupted", () => this.#onInterrupted()),
        transport.on("turn-complete", () => this.#endOfAudio()),
        transport.on("connection", (state) => {
          this.#endOfAudio();
          // It is back with `ready`.
          if (state === "lost") this.#set({ isReconnecting: this.#state.status === "on" });
        }),
        transport.on("transcript", (transcript) => this.#onTranscript(transcript)),
        transport.on("turn", (turn) => this.#onTurn(turn)),
      );
      transport.connect();
    });
  }

  async #openDevices(inputRate: number, outputRate: number, generation: number): Promise<void> {
    const worklets = resolve(this.#options.worklets);
    const constraints = resolve(this.#options.constraints);
    const speaker = await Speaker.open({
      rate: outputRate,
      worklet: worklets?.playback ?? PLAYBACK_WORKLET,
      onProgress: ({ level, queued }) => {
        this.#levels = { ...this.#levels, output: level };
        this.#set({ isSpeaking: queued > 0 });
      },
    });
    if (generation !== this.#generation) return speaker.close();
    this.#speaker = speaker;
    const microphone = await Microphone.open({
      rate: inputRate,
      worklet: worklets?.capture ?? CAPTURE_WORKLET,
      constraints,
      onCapture: ({ samples, level }) => {
        if (this.#state.isMuted) return;
        this.#levels = { ...this.#levels, input: level };
        this.#transport?.sendAudio(samples);
      },
    });
    if (generation !== this.#generation) return microphone.close();
    this.#microphone = microphone;
    this.#set({ status: "on" });
  }

  #play(samples: ArrayBuffer): void {
    this.#isReceiving = true;
    if (!this.#isDiscarding) this.#speaker?.play(samples);
  }

  #onInterrupted(): void {
    this.#endOfAudio();
    this.#speaker?.clear();
  }

  #endOfAudio(): void {
    this.#isReceiving = false;
    this.#isDiscarding = false;
  }

  #onTranscript(transcript: LiveEvents["transcript"]): void {
    if (transcript.role === "user") this.#transcripts.set(transcript.messageId, transcript.text);
    this.#options.onTranscript?.(transcript);
  }

  #onTurn({ messageId, userMessageId }: LiveEvents["turn"]): void {
    const text = this.#transcripts.get(userMessageId) ?? "";
    this.#transcripts.delete(userMessageId);
    this.#options.onTurn?.({ messageId, userMessageId, text });
  }

  async #end(error: Error | undefined): Promise<void> {
    if (this.#state.status === "off") return;
    this.#generation += 1;
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
    const [microphone, speaker] = [this.#microphone, this.#speaker];
    this.#microphone = undefined;
    this.#speaker = undefined;
    this.#endOfAudio();
    this.#transcripts.clear();
    this.#levels = SILENT;
    this.#transport?.disconnect();
    this.#transport = undefined;
    this.#set({ ...OFF, error });
    await Promise.all([microphone?.close(), speaker?.close()]);
  }

  #set(change: Partial<VoiceState>): void {
    const next = { ...this.#state, ...change };
    const keys = Object.keys(next) as (keyof VoiceState)[];
    if (keys.every((key) => next[key] === this.#state[key])) return;
    this.#state = next;
    for (const listener of this.#listeners) listener();
  }
}
