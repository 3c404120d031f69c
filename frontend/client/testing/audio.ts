import { vi } from "vitest";
import { Port } from "./worklet.ts";

/** What a page did with the audio of its browser. */
export interface Audio {
  readonly contexts: FakeContext[];
  /** The loudspeaker's worklet, and the microphone's. */
  readonly nodes: Map<string, FakeNode>;
  readonly tracks: { stopped: boolean }[];
  readonly asked: unknown[];
  /** Why the microphone is not given. */
  refusal: Error | undefined;
}

export class FakeContext {
  readonly sampleRate: number;
  readonly modules: string[] = [];
  readonly audioWorklet = {
    addModule: async (address: URL | string) => void this.modules.push(String(address)),
  };
  readonly destination = {};
  state = "suspended";

  constructor(options?: { sampleRate: number }) {
    this.sampleRate = options?.sampleRate ?? 48_000;
  }

  createMediaStreamSource(): { connect: () => void } {
    return { connect: () => {} };
  }

  async resume(): Promise<void> {
    this.state = "running";
  }

  async close(): Promise<void> {
    this.state = "closed";
  }
}

export class FakeNode {
  readonly port = new Port();
  readonly options: { processorOptions: object };

  constructor(options: { processorOptions: object }) {
    this.options = options;
  }

  connect(): void {}

  /** Say something to the page, as the worklet would. */
  say(data: object): void {
    this.port.onmessage?.({ data });
  }
}

/** A browser with a microphone and a loudspeaker. */
export function audioBrowser(): Audio {
  const audio: Audio = {
    contexts: [],
    nodes: new Map(),
    tracks: [],
    asked: [],
    refusal: undefined,
  };
  vi.stubGlobal(
    "AudioContext",
    class extends FakeContext {
      constructor(options?: { sampleRate: number }) {
        super(options);
        audio.contexts.push(this);
      }
    },
  );
  vi.stubGlobal(
    "AudioWorkletNode",
    class extends FakeNode {
      constructor(_: unknown, name: string, options: { processorOptions: object }) {
        super(options);
        audio.nodes.set(name, this);
      }
    },
  );
  const getUserMedia = async (constraints: unknown) => {
    audio.asked.push(constraints);
    if (audio.refusal) throw audio.refusal;
    const track = {
      stopped: false,
      stop() {
        track.stopped = true;
      },
    };
    audio.tracks.push(track);
    return { getTracks: () => [track] };
  };
  vi.stubGlobal("navigator", { mediaDevices: { getUserMedia } });
  return audio;
}
