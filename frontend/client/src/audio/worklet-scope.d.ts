// The globals of the AudioWorkletGlobalScope that the worklets use.

declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new (options: never) => object): void;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
