// What there is where worklets run, as far as the worklets here use it.

declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new (options: never) => object): void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
