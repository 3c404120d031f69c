import type { Voice } from "../audio/voice.ts";
import { type Levels, OFF, SILENT, type VoiceState } from "../audio/voice-state.ts";

/** A `Voice` whose code is loaded on its first start. */
export class LazyVoice {
  readonly #load: () => Promise<Voice>;
  readonly #listeners = new Set<() => void>();
  #voice: Voice | undefined;
  /** The number of stops; a start that loads meanwhile does not continue. */
  #stops = 0;

  constructor(load: () => Promise<Voice>) {
    this.#load = load;
  }

  readonly state = (): VoiceState => this.#voice?.state() ?? OFF;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get levels(): Levels {
    return this.#voice?.levels ?? SILENT;
  }

  readonly start = async (): Promise<void> => {
    const stops = this.#stops;
    const voice = this.#voice ?? (await this.#load());
    if (stops !== this.#stops) throw new Error("The voice was stopped.");
    // Another start may have loaded it meanwhile.
    this.#voice ??= this.#observe(voice);
    await this.#voice.start();
  };

  readonly stop = async (): Promise<void> => {
    this.#stops += 1;
    await this.#voice?.stop();
  };

  readonly mute = (isMuted = true): void => this.#voice?.mute(isMuted);

  readonly interrupt = (): void => this.#voice?.interrupt();

  #observe(voice: Voice): Voice {
    voice.subscribe(() => {
      for (const listener of this.#listeners) listener();
    });
    return voice;
  }
}
