import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const RATE = 48_000;
/** Beside the packages: what lies in a folder of all users may be another one's. */
const FOLDER = join(import.meta.dirname, "../../node_modules/.cache/sluicegate");

/** A WAV file with a second of a tone and then silence, which a browser can take for a microphone. */
export function microphoneFile(hertz: number): string {
  const path = join(FOLDER, `${hertz}-hz.wav`);
  if (existsSync(path)) return path;
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
  mkdirSync(FOLDER, { recursive: true });
  const part = `${path}.${process.pid}`;
  writeFileSync(part, Buffer.concat([head, samples]));
  renameSync(part, path);
  return path;
}
