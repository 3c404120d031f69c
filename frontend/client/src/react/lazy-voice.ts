import type { Voice } from "../audio/voice.ts";
import { type Levels, SILENT, type VoiceState } from "../audio/voice-state.ts";

/** A `Voice` whose code is loaded on its first start; it has the methods of `VoiceControls`. */
export class LazyVoice {
  readonly #load: () => Promise<Voice>;
  readonly #onChange: (state: VoiceState) => void;
  #voice: Voice | undefined;
  /** The number of stops; a start that loads meanwhile does not continue. */
  #stops = 0;

  /** The state is `OFF` until `onChange` is called. */
  constructor(load: () => Promise<Voice>, onChange: (state: VoiceState) => void) {
    this.#load = load;
    this.#onChange = onChange;
  }

  readonly levels = (): Levels => this.#voice?.levels ?? SILENT;

  readonly start = async (): Promise<void> => {
    const stops = this.#stops;
    const voice = this.#voice ?? (await this.#load());
    if (stops !== this.#stops) throw new Error("The voice was stopped.");
    // Another start may have loaded it meanwhile.
    if (this.#voice === undefined) {
      this.#voice = voice;
      voice.subscribe(() => this.#onChange(voice.state()));
    }
    await this.#voice.start();
  };

  readonly stop = async (): Promise<void> => {
    this.#stops += 1;
    await this.#voice?.stop();
  };

  readonly mute = (isMuted = true): void => this.#voice?.mute(isMuted);

  readonly interrupt = (): void => this.#voice?.interrupt();
}
