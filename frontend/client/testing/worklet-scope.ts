import { vi } from "vitest";

/** A fake `MessagePort` that records the posted messages. */
export class FakePort {
  readonly posted: { readonly [key: string]: unknown }[] = [];
  onmessage: ((event: { data: unknown }) => void) | null = null;

  postMessage(data: { readonly [key: string]: unknown }): void {
    this.posted.push(data);
  }
}

/** Stub the AudioWorkletGlobalScope of a device with this sample rate. */
export function stubWorkletScope(sampleRate: number): void {
  vi.resetModules();
  vi.stubGlobal("sampleRate", sampleRate);
  vi.stubGlobal("registerProcessor", () => {});
  vi.stubGlobal(
    "AudioWorkletProcessor",
    class {
      readonly port = new FakePort();
    },
  );
}

/** A sine tone, as samples from -1 to 1. */
export function tone(hertz: number, seconds: number, rate: number, amplitude = 0.5): Float32Array {
  return Float32Array.from(
    { length: Math.round(seconds * rate) },
    (_, index) => amplitude * Math.sin((2 * Math.PI * hertz * index) / rate),
  );
}

export function pcm16(samples: Float32Array): ArrayBuffer {
  return Int16Array.from(samples, (sample) => Math.round(sample * 0x7fff)).buffer;
}

/** The frequency of a tone in hertz, from its rising zero crossings. */
export function frequencyOf(samples: ArrayLike<number>, rate: number): number {
  const crossings: number[] = [];
  for (let index = 1; index < samples.length; index += 1) {
    const [previous, current] = [samples[index - 1] ?? 0, samples[index] ?? 0];
    if (previous < 0 && current >= 0) crossings.push(index - current / (current - previous));
  }
  const [first, last] = [crossings[0] ?? 0, crossings.at(-1) ?? 0];
  return ((crossings.length - 1) * rate) / (last - first);
}
