import type { Page } from "@playwright/test";

declare global {
  interface Window {
    /** Stands before the loudspeaker and sees what it is given. */
    loudspeaker?: AnalyserNode;
  }
}

/** Lets a test measure what the page plays; to be called before the page is opened. */
export async function listenIn(page: Page): Promise<void> {
  await page.addInitScript(() => {
    type Connect = (this: AudioNode, ...to: unknown[]) => AudioNode;
    const connect = AudioNode.prototype.connect as unknown as Connect;
    const listening: Connect = function (...to) {
      if (to[0] instanceof AudioDestinationNode && this.context.sampleRate === 24_000) {
        const analyser = this.context.createAnalyser();
        analyser.fftSize = 8192;
        analyser.smoothingTimeConstant = 0;
        connect.call(this, analyser);
        window.loudspeaker = analyser;
      }
      return connect.apply(this, to);
    };
    AudioNode.prototype.connect = listening as unknown as typeof AudioNode.prototype.connect;
  });
}

/** The strongest frequency that is being played, in hertz; 0 in silence. */
export async function playedHertz(page: Page): Promise<number> {
  return await page.evaluate(() => {
    const analyser = window.loudspeaker;
    if (analyser === undefined) return 0;
    const levels = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(levels);
    const loudest = Math.max(...levels);
    if (loudest < -60) return 0;
    return (levels.indexOf(loudest) * analyser.context.sampleRate) / analyser.fftSize;
  });
}

/** Presses a button and returns after how many milliseconds the page has gone silent. */
export async function silencedBy(page: Page, button: string): Promise<number> {
  return await page.evaluate(async (name) => {
    const analyser = window.loudspeaker;
    const pressed = [...document.querySelectorAll("button")].find((one) => one.innerText === name);
    if (analyser === undefined || pressed === undefined) throw new Error(`no ${name}`);
    // The newest samples of what is played, some milliseconds long.
    analyser.fftSize = 256;
    const samples = new Float32Array(analyser.fftSize);
    const begun = performance.now();
    pressed.click();
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      analyser.getFloatTimeDomainData(samples);
      const passed = performance.now() - begun;
      if (samples.every((sample) => Math.abs(sample) < 0.001) || passed > 5000) return passed;
    }
  }, button);
}
