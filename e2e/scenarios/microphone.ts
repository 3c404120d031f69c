import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const RATE = 48_000;

/** A WAV file with a second of a tone and then silence, which a browser can take for a microphone. */
export function microphoneFile(hertz: number): string {
  const samples = Buffer.alloc(RATE * 4 * 2);
  for (let index = 0; index < RATE; index += 1) {
    const value = Math.sin((2 * Math.PI * hertz * index) / RATE);
    samples.writeInt16LE(Math.round(value * 20_000), (index + RATE) * 2);
  }
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE, 24);
  head.writeUInt32LE(RATE * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples.length, 40);
  const path = join(tmpdir(), `sluicegate-${hertz}-hz.wav`);
  writeFileSync(path, Buffer.concat([head, samples]));
  return path;
}
