import { vi } from "vitest";

/** A port whose other end a test holds. */
export class Port {
  readonly posted: { readonly [key: string]: unknown }[] = [];
  onmessage: ((event: { data: unknown }) => void) | null = null;

  postMessage(data: { readonly [key: string]: unknown }): void {
    this.posted.push(data);
  }
}

/** Stand in for the place where worklets run, with a device of this rate. */
export function audioScope(sampleRate: number): void {
  vi.resetModules();
  vi.stubGlobal("sampleRate", sampleRate);
  vi.stubGlobal("registerProcessor", () => {});
  vi.stubGlobal(
    "AudioWorkletProcessor",
    class {
      readonly port = new Port();
    },
  );
}

/** So many seconds of a tone, in samples from -1 to 1. */
export function tone(hertz: number, seconds: number, rate: number, loudness = 0.5): Float32Array {
  return Float32Array.from(
    { length: Math.round(seconds * rate) },
    (_, at) => loudness * Math.sin((2 * Math.PI * hertz * at) / rate),
  );
}

export function pcm16(samples: Float32Array): ArrayBuffer {
  return Int16Array.from(samples, (sample) => Math.round(sample * 0x7fff)).buffer;
}

/** The frequency of a tone, by how often it rises through zero. */
export function hertzOf(samples: ArrayLike<number>, rate: number): number {
  const rises: number[] = [];
  for (let at = 1; at < samples.length; at += 1) {
    const [before, now] = [samples[at - 1] ?? 0, samples[at] ?? 0];
    if (before < 0 && now >= 0) rises.push(at - now / (now - before));
  }
  const [first, last] = [rises[0] ?? 0, rises.at(-1) ?? 0];
  return ((rises.length - 1) * rate) / (last - first);
}
