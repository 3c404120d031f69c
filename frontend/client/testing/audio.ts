import { vi } from "vitest";
import { FakePort } from "./worklet-scope.ts";

/** A record of the audio API calls of a page. */
export interface FakeAudio {
  readonly contexts: FakeContext[];
  /** The worklet nodes by processor name. */
  readonly nodes: Map<string, FakeNode>;
  readonly tracks: { stopped: boolean }[];
  readonly constraints: unknown[];
  /** The error of `getUserMedia`, if the microphone is not permitted. */
  permissionError: Error | undefined;
}

export class FakeContext {
  readonly sampleRate: number;
  readonly modules: string[] = [];
  readonly audioWorklet = {
    addModule: async (url: URL | string) => void this.modules.push(String(url)),
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
  readonly port = new FakePort();
  readonly options: { processorOptions: object };

  constructor(options: { processorOptions: object }) {
    this.options = options;
  }

  connect(): void {}

  /** Emit a message of the worklet to the page. */
  emit(data: object): void {
    this.port.onmessage?.({ data });
  }
}

/** Stub the audio API of the browser. */
export function stubAudio(): FakeAudio {
  const audio: FakeAudio = {
    contexts: [],
    nodes: new Map(),
    tracks: [],
    constraints: [],
    permissionError: undefined,
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
    audio.constraints.push(constraints);
    if (audio.permissionError) throw audio.permissionError;
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
