/** What a capture is made with. */
export interface CaptureOptions {
  readonly processorOptions: {
    /** Samples per second that are wanted, whatever the device gives. */
    readonly rate: number;
    /** Samples of one block. */
    readonly block: number;
  };
}

/** What a capture says: a block of PCM16, and how loud it is, from 0 to 1. */
export interface Captured {
  readonly samples: ArrayBuffer;
  readonly level: number;
}

/** What a playback is made with. */
export interface PlaybackOptions {
  /** Samples per second of what is played. */
  readonly processorOptions: { readonly rate: number };
}

/** What a playback is told: PCM16 to play after what waits, or to be silent at once. */
export type PlaybackOrder = { readonly samples: ArrayBuffer } | { readonly silence: true };

/** What a playback says now and then: how loud it is, from 0 to 1, and the seconds that wait. */
export interface Played {
  readonly level: number;
  readonly waiting: number;
}
