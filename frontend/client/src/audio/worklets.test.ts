import { afterEach, describe, expect, test, vi } from "vitest";
import {
  type FakePort,
  frequencyOf,
  pcm16,
  stubWorkletScope,
  tone,
} from "../../testing/worklet-scope.ts";
import type { Capture } from "./capture-worklet.js";
import type { Playback } from "./playback-worklet.js";

const QUANTUM = 128;
const CAPTURED = 16_000;
const PLAYED = 24_000;

afterEach(() => {
  vi.unstubAllGlobals();
});

async function capture(deviceRate: number): Promise<{ node: Capture; port: FakePort }> {
  stubWorkletScope(deviceRate);
  const { Capture } = await import("./capture-worklet.js");
  const node = new Capture({ processorOptions: { rate: CAPTURED, block: 640 } });
  return { node, port: node.port as unknown as FakePort };
}

async function playback(deviceRate: number): Promise<{ node: Playback; port: FakePort }> {
  stubWorkletScope(deviceRate);
  const { Playback } = await import("./playback-worklet.js");
  const node = new Playback({ processorOptions: { rate: PLAYED } });
  return { node, port: node.port as unknown as FakePort };
}

function process(node: Capture, ...channels: readonly Float32Array[]): void {
  for (let at = 0; at < (channels[0]?.length ?? 0); at += QUANTUM) {
    node.process([channels.map((channel) => channel.subarray(at, at + QUANTUM))]);
  }
}

function play(node: Playback, seconds: number, rate: number, channels = 1): Float32Array[] {
  const quanta = Math.round((seconds * rate) / QUANTUM);
  const made = Array.from({ length: channels }, () => new Float32Array(quanta * QUANTUM));
  for (let quantum = 0; quantum < quanta; quantum += 1) {
    const at = quantum * QUANTUM;
    node.process([], [made.map((channel) => channel.subarray(at, at + QUANTUM))]);
  }
  return made;
}

function blocksOf(port: FakePort): Int16Array[] {
  return port.posted.map(({ samples }) => new Int16Array(samples as ArrayBuffer));
}

function concatenate(blocks: readonly Int16Array[]): number[] {
  return blocks.flatMap((block) => [...block]);
}

describe.each([16_000, 44_100, 48_000])("a microphone of %i hertz", (rate) => {
  test("is captured at 16,000 hertz, in blocks of 40 milliseconds", async () => {
    const { node, port } = await capture(rate);
    process(node, tone(1_000, 1.01, rate));
    const blocks = blocksOf(port);

    expect(blocks.length).toBe(25);
    expect(blocks.every((block) => block.length === 640)).toBe(true);
    expect(frequencyOf(concatenate(blocks), CAPTURED)).toBeCloseTo(1_000, 0);
    const levels = port.posted.map(({ level }) => level as number);
    expect(Math.min(...levels)).toBeGreaterThan(0.33);
    expect(Math.max(...levels)).toBeLessThan(0.37);
  });

  test("is mixed down to one channel", async () => {
    const { node, port } = await capture(rate);
    const one = tone(1_000, 0.2, rate);
    process(
      node,
      one,
      one.map((sample) => -sample),
    );

    expect(concatenate(blocksOf(port)).every((sample) => sample === 0)).toBe(true);
    expect(port.posted.every(({ level }) => level === 0)).toBe(true);
  });
});

test("samples out of range are clipped", async () => {
  const { node, port } = await capture(CAPTURED);
  process(node, tone(100, 0.2, CAPTURED, 3));
  const samples = concatenate(blocksOf(port));

  expect([Math.max(...samples), Math.min(...samples)]).toEqual([0x7fff, -0x8000]);
});

test("a microphone without input posts nothing", async () => {
  const { node, port } = await capture(CAPTURED);
  expect(node.process([[]])).toBe(true);
  expect(node.process([])).toBe(true);
  expect(port.posted).toEqual([]);
});

describe.each([24_000, 44_100, 48_000])("a loudspeaker of %i hertz", (rate) => {
  test("plays the queue in order, then silence", async () => {
    const { node, port } = await playback(rate);
    for (let block = 0; block < 10; block += 1) {
      const samples = tone(440, 1, PLAYED).subarray(block * 2_400, (block + 1) * 2_400);
      port.onmessage?.({ data: { samples: pcm16(samples) } });
    }
    const [made] = play(node, 1, rate);
    const [after] = play(node, 0.1, rate);

    expect(frequencyOf(made ?? [], rate)).toBeCloseTo(440, 0);
    const jumps = made?.map((sample, at) => Math.abs(sample - (made[at - 1] ?? 0))) ?? [];
    expect(Math.max(...jumps)).toBeLessThan(0.07);
    expect(after?.subarray(QUANTUM).every((sample) => sample === 0)).toBe(true);
  });

  test("plays the duration of its queue", async () => {
    const { node, port } = await playback(rate);
    const ones = new Float32Array(12_000).fill(0.5);
    port.onmessage?.({ data: { samples: pcm16(ones) } });
    const [made] = play(node, 1, rate);

    const played = (made?.filter((sample) => sample !== 0).length ?? 0) / rate;
    expect(played).toBeCloseTo(0.5, 2);
  });

  test("is silent immediately after clear", async () => {
    const { node, port } = await playback(rate);
    port.onmessage?.({ data: { samples: pcm16(tone(440, 5, PLAYED)) } });
    play(node, 0.1, rate);
    port.onmessage?.({ data: { clear: true } });
    const [made] = play(node, 0.1, rate);

    expect(made?.every((sample) => sample === 0)).toBe(true);
    expect(port.posted.at(-1)).toEqual({ level: 0, queued: 0 });
    port.onmessage?.({ data: { samples: pcm16(tone(440, 1, PLAYED)) } });
    const [again] = play(node, 0.1, rate);
    expect(frequencyOf(again ?? [], rate)).toBeCloseTo(440, -1);
  });
});

test("a loudspeaker reports its level and queue until the queue is empty", async () => {
  const { node, port } = await playback(PLAYED);
  port.onmessage?.({ data: { samples: pcm16(tone(440, 0.2, PLAYED)) } });
  play(node, 1, PLAYED, 2);
  const reports = port.posted as unknown as { level: number; queued: number }[];

  expect(reports.length).toBeGreaterThanOrEqual(4);
  expect(reports.length).toBeLessThanOrEqual(6);
  expect(reports[0]?.level).toBeCloseTo(0.35, 1);
  expect(reports[0]?.queued).toBeCloseTo(0.16, 2);
  expect(reports.at(-1)).toEqual({ level: 0, queued: 0 });
});

test("every channel of a loudspeaker plays the same signal", async () => {
  const { node, port } = await playback(PLAYED);
  port.onmessage?.({ data: { samples: pcm16(tone(440, 0.1, PLAYED)) } });
  const [left, right] = play(node, 0.1, PLAYED, 2);

  expect(right).toEqual(left);
  expect(node.process([], [])).toBe(true);
});
