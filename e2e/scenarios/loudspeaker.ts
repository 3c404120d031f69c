import type { Page } from "@playwright/test";

declare global {
  interface Window {
    /** An analyser between the page's audio and the loudspeaker. */
    loudspeaker?: AnalyserNode;
  }
}

/** Let a test analyse the audio that the page plays; call it before the page is opened. */
export async function observeLoudspeaker(page: Page): Promise<void> {
  await page.addInitScript(() => {
    type Connect = (this: AudioNode, ...to: unknown[]) => AudioNode;
    const connect = AudioNode.prototype.connect as unknown as Connect;
    const observedConnect: Connect = function (...to) {
      if (to[0] instanceof AudioDestinationNode && this.context.sampleRate === 24_000) {
        const analyser = this.context.createAnalyser();
        analyser.fftSize = 32_768;
        analyser.smoothingTimeConstant = 0;
        connect.call(this, analyser);
        window.loudspeaker = analyser;
      }
      return connect.apply(this, to);
    };
    AudioNode.prototype.connect = observedConnect as unknown as typeof AudioNode.prototype.connect;
  });
}

/** The strongest frequency that is being played, in hertz; 0 in silence. */
export async function playedHertz(page: Page): Promise<number> {
  return await page.evaluate(() => {
    const analyser = window.loudspeaker;
    if (analyser === undefined) return 0;
    analyser.fftSize = 8_192;
    const levels = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(levels);
    const loudest = Math.max(...levels);
    if (loudest < -60) return 0;
    return (levels.indexOf(loudest) * analyser.context.sampleRate) / analyser.fftSize;
  });
}

/**
 * Press a button and return the milliseconds of audio that were played until silence.
 *
 * The time is that of the audio clock, and the silence is dated by its length, so neither a busy
 * machine nor the interval of the polling changes the result.
 */
export async function millisecondsUntilSilence(page: Page, button: string): Promise<number> {
  return await page.evaluate(async (name) => {
    const analyser = window.loudspeaker;
    const element = [...document.querySelectorAll("button")].find((one) => one.innerText === name);
    if (analyser === undefined || element === undefined) throw new Error(`no ${name}`);
    // The samples of the last 1.4 seconds.
    analyser.fftSize = 32_768;
    const samples = new Float32Array(analyser.fftSize);
    const { context } = analyser;
    const start = context.currentTime;
    element.click();
    for (;;) {
      analyser.getFloatTimeDomainData(samples);
      const end = context.currentTime;
      const silent = samples.length - 1 - samples.findLastIndex((one) => Math.abs(one) >= 0.001);
      if (silent >= 256) return 1_000 * Math.max(0, end - silent / context.sampleRate - start);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }, button);
}
