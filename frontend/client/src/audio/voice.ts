import type { BidiChatTransport } from "../bidi/bidi-transport.ts";
import type { LiveEvents } from "../bidi/live-events.ts";
import { CAPTURE_WORKLET, Microphone } from "./microphone.ts";
import { PLAYBACK_WORKLET, Speaker } from "./speaker.ts";

/** Where a conversation by voice stands. */
export interface VoiceState {
  readonly status: "off" | "starting" | "on";
  readonly isMuted: boolean;
  /** Whether the agent is to be heard. */
  readonly isSpeaking: boolean;
  /** What went wrong last: why it ended or could not begin, or what the server complains of. */
  readonly error: Error | undefined;
}

/** How loud it is, from 0 to 1; changes many times a second and is told to nobody. */
export interface Levels {
  readonly input: number;
  readonly output: number;
}

/** A spoken message of the user that is being answered. */
export interface SpokenTurn {
  /** The answer's; a resume of this message brings it. */
  readonly messageId: string;
  readonly userMessageId: string;
  /** What the user said, as far as it is known by now; transcripts may tell more. */
  readonly text: string;
}

/** The part of a `BidiChatTransport` that a voice needs. */
export type LiveLine = Pick<
  BidiChatTransport,
  "connect" | "disconnect" | "on" | "sendAudio" | "tell"
>;

/** Where the worklets are, if the page's build has moved them. */
export interface Worklets {
  readonly capture?: URL | string;
  readonly playback?: URL | string;
}

export interface VoiceOptions {
  /** A transport to `/live`; asked for at each start. */
  readonly transport: LiveLine | (() => LiveLine);
  readonly worklets?: Worklets | (() => Worklets | undefined) | undefined;
  /** What is asked of the microphone, beside one channel without echo. */
  readonly constraints?: MediaTrackConstraints | (() => MediaTrackConstraints | undefined);
  readonly onTranscript?: ((transcript: LiveEvents["transcript"]) => void) | undefined;
  readonly onTurn?: ((turn: SpokenTurn) => void) | undefined;
}

function asked<Thing>(given: Thing | (() => Thing)): Thing {
  return typeof given === "function" ? (given as () => Thing)() : given;
}

const OFF: VoiceState = { status: "off", isMuted: false, isSpeaking: false, error: undefined };

/** A conversation by voice over a live connection: microphone, loudspeaker and what is told. */
export class Voice {
  readonly #options: VoiceOptions;
  readonly #listeners = new Set<() => void>();
  readonly #said = new Map<string, string>();
  readonly #ears: (() => void)[] = [];
  #state = OFF;
  #levels: Levels = { input: 0, output: 0 };
  #line: LiveLine | undefined;
  #microphone: Microphone | undefined;
  #speaker: Speaker | undefined;
  /** Whether audio of one answer is coming in. */
  #isComing = false;
  /** What still comes of it was interrupted here, before the server heard of it. */
  #isCutOff = false;
  /** Counts the beginnings, so that one that was ended meanwhile does not go on. */
  #begun = 0;

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
   * Open connection, loudspeaker and microphone; to be called when the person asks for it, since
   * browsers let no page be heard before.
   *
   * Rejects if the microphone is not allowed or the server refuses.
   */
  readonly start = async (): Promise<void> => {
    if (this.#state.status !== "off") return;
    this.#begun += 1;
    const begun = this.#begun;
    this.#set({ ...OFF, status: "starting" });
    try {
      const { inputRate, outputRate } = await this.#ready();
      await this.#open(inputRate, outputRate, begun);
    } catch (error) {
      if (begun !== this.#begun) return;
      const failure = error instanceof Error ? error : new Error(String(error));
      await this.#end(failure);
      throw failure;
    }
  };

  readonly stop = (): Promise<void> => this.#end(undefined);

  /** Send nothing of what the microphone hears, or send it again. */
  readonly mute = (isMuted = true): void => {
    this.#set({ isMuted });
    if (isMuted) this.#levels = { ...this.#levels, input: 0 };
  };

  /** Cut the agent short: it is silent at once, and the model is told. */
  readonly interrupt = (): void => {
    this.#isCutOff = this.#isComing;
    this.#speaker?.silence();
    this.#line?.tell({ type: "interrupt" });
  };

  /** Listen to the connection, and wait until audio may flow. */
  #ready(): Promise<LiveEvents["ready"]> {
    const line = asked(this.#options.transport);
    this.#line = line;
    return new Promise((resolve, reject) => {
      this.#ears.push(
        () => reject(new Error("The voice was stopped.")),
        line.on("ready", (rates) => {
          resolve(rates);
          this.#set({ error: undefined });
        }),
        line.on("error", (error) => {
          reject(error);
          this.#set({ error });
        }),
        line.on("refused", (error) => {
          reject(error);
          if (this.#state.status === "on") void this.#end(error);
        }),
        line.on("audio", (samples) => this.#play(samples)),
        line.on("interrupted", () => this.#interrupted()),
        line.on("turn-complete", () => this.#saidAll()),
        line.on("connection", () => this.#saidAll()),
        line.on("transcript", (transcript) => this.#transcript(transcript)),
        line.on("turn", (turn) => this.#turn(turn)),
      );
      line.connect();
    });
  }

  async #open(inputRate: number, outputRate: number, begun: number): Promise<void> {
    const worklets = asked(this.#options.worklets);
    const constraints = asked(this.#options.constraints);
    const speaker = await Speaker.open({
      rate: outputRate,
      worklet: worklets?.playback ?? PLAYBACK_WORKLET,
      played: ({ level, waiting }) => {
        this.#levels = { ...this.#levels, output: level };
        this.#set({ isSpeaking: waiting > 0 });
      },
    });
    if (begun !== this.#begun) return speaker.close();
    this.#speaker = speaker;
    const microphone = await Microphone.open({
      rate: inputRate,
      worklet: worklets?.capture ?? CAPTURE_WORKLET,
      constraints,
      captured: ({ samples, level }) => {
        if (this.#state.isMuted) return;
        this.#levels = { ...this.#levels, input: level };
        this.#line?.sendAudio(samples);
      },
    });
    if (begun !== this.#begun) return microphone.close();
    this.#microphone = microphone;
    this.#set({ status: "on" });
  }

  #play(samples: ArrayBuffer): void {
    this.#isComing = true;
    if (!this.#isCutOff) this.#speaker?.play(samples);
  }

  #interrupted(): void {
    this.#saidAll();
    this.#speaker?.silence();
  }

  #saidAll(): void {
    this.#isComing = false;
    this.#isCutOff = false;
  }

  #transcript(transcript: LiveEvents["transcript"]): void {
    if (transcript.role === "user") this.#said.set(transcript.messageId, transcript.text);
    this.#options.onTranscript?.(transcript);
  }

  #turn({ messageId, userMessageId }: LiveEvents["turn"]): void {
    const text = this.#said.get(userMessageId) ?? "";
    this.#said.delete(userMessageId);
    this.#options.onTurn?.({ messageId, userMessageId, text });
  }

  async #end(error: Error | undefined): Promise<void> {
    if (this.#state.status === "off") return;
    this.#begun += 1;
    for (const silence of this.#ears.splice(0)) silence();
    const [microphone, speaker] = [this.#microphone, this.#speaker];
    this.#microphone = undefined;
    this.#speaker = undefined;
    this.#saidAll();
    this.#said.clear();
    this.#levels = { input: 0, output: 0 };
    this.#line?.disconnect();
    this.#line = undefined;
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
