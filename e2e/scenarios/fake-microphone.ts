import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const RATE = 48_000;
/** In node_modules, since a shared temporary folder may belong to another user. */
const FOLDER = join(import.meta.dirname, "../../node_modules/.cache/sluicegate");

/** A WAV file for the browser's fake microphone: a second of silence, a second of a tone, silence. */
export function microphoneFile(hertz: number): string {
  const path = join(FOLDER, `${hertz}-hz.wav`);
  if (existsSync(path)) return path;
  const samples = Buffer.alloc(RATE * 4 * 2);
  for (let index = 0; index < RATE; index += 1) {
    const value = Math.sin((2 * Math.PI * hertz * index) / RATE);
    samples.writeInt16LE(Math.round(value * 20_000), (index + RATE) * 2);
  }
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + samples.length, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(RATE * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(samples.length, 40);
  mkdirSync(FOLDER, { recursive: true });
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, Buffer.concat([header, samples]));
  renameSync(temporary, path);
  return path;
}
