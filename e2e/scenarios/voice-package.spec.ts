import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, type WebSocketRoute } from "@playwright/test";

// The published files of the client package, on a page with a strict content security policy.

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = mkdtempSync(join(tmpdir(), "sluicegate-voice-"));
const WAV = join(FOLDER, "tone.wav");
const CAPTURED_HERTZ = 1_000;
const PLAYED_HERTZ = 440;

const PAGE = `<!doctype html><title>Voice</title><button>Speak</button><script type="module" src="/page.js"></script>`;

/** A page with a voice, and an analyser between the package and the loudspeaker. */
const SCRIPT = `
import { Voice } from "/dist/audio/index.js";
import { createBidiTransport } from "/dist/bidi/index.js";

const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (target, ...rest) {
  if (target !== this.context.destination) return connect.call(this, target, ...rest);
  const analyser = new AnalyserNode(this.context, { fftSize: 32768 });
  window.played = () => {
    const samples = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(samples);
    const silent = samples.length - 1 - samples.findLastIndex((sample) => sample !== 0);
    const { currentTime: time, sampleRate: rate } = this.context;
    return { samples: [...samples.slice(-8192)], rate, silent, time };
  };
  connect.call(this, analyser);
  return connect.call(this, target, ...rest);
};

const transport = createBidiTransport({
  api: "/api/chat", major: 7, live: { chatId: "chat" },
});
window.voice = new Voice({ transport, onTranscript: ({ text }) => { document.title = text; } });
document.querySelector("button").addEventListener("click", () => window.voice.start());
`;

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";

/** A tone as PCM16. */
function tone(hertz: number, seconds: number, rate: number): Buffer {
  const samples = Int16Array.from({ length: seconds * rate }, (_, at) =>
    Math.round(0x4000 * Math.sin((2 * Math.PI * hertz * at) / rate)),
  );
  return Buffer.from(samples.buffer);
}

function wav(pcm: Buffer, rate: number): Buffer {
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + pcm.length, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(2 * rate, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(pcm.length, 40);
  return Buffer.concat([header, pcm]);
}

/** The frequency of a tone in hertz, from its rising zero crossings. */
function frequencyOf(samples: ArrayLike<number>, rate: number): number {
  const crossings: number[] = [];
  for (let at = 1; at < samples.length; at += 1) {
    const [before, now] = [samples[at - 1] ?? 0, samples[at] ?? 0];
    if (before < 0 && now >= 0) crossings.push(at - now / (now - before));
  }
  return ((crossings.length - 1) * rate) / ((crossings.at(-1) ?? 0) - (crossings[0] ?? 0));
}

/** Serve the page and the package, each file with the content security policy. */
function serve(): Promise<Server> {
  const server = createServer(({ url }, response) => {
    const path = url ?? "/";
    const isScript = path.endsWith(".js");
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.setHeader("content-security-policy", POLICY);
    if (path === "/page.js") response.end(SCRIPT);
    else if (isScript) response.end(readFileSync(join(FOLDER, path)));
    else response.end(PAGE);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

let server: Server;

test.beforeAll(async () => {
  writeFileSync(WAV, wav(tone(CAPTURED_HERTZ, 5, 48_000), 48_000));
  const build = ["-p", "frontend/client/tsconfig.build.json", "--outDir", join(FOLDER, "dist")];
  execFileSync(join(ROOT, "node_modules/.bin/tsc"), build, { cwd: ROOT, stdio: "inherit" });
  for (const worklet of ["capture-worklet.js", "playback-worklet.js"]) {
    copyFileSync(
      join(ROOT, "frontend/client/src/audio", worklet),
      join(FOLDER, "dist/audio", worklet),
    );
  }
  server = await serve();
});
test.afterAll(() => {
  server.close();
  rmSync(FOLDER, { recursive: true });
});

test.use({
  launchOptions: async ({ launchOptions }, use) => {
    const microphone = [
      "--use-fake-device-for-media-stream",
      "--use-fake-ui-for-media-stream",
      `--use-file-for-fake-audio-capture=${WAV}`,
    ];
    await use({ ...launchOptions, args: [...(launchOptions.args ?? []), ...microphone] });
  },
});

interface Window {
  /** The last samples, the number of silent ones at the end of a longer window, and the time. */
  played(): { samples: number[]; rate: number; silent: number; time: number };
  voice: { interrupt(): void; state(): { status: string }; levels: { input: number } };
}
declare const window: Window;

test("a page captures, plays and is silenced with a strict content security policy", async ({
  page,
}) => {
  let socket: WebSocketRoute | undefined;
  const sent: Buffer[] = [];
  const frames: string[] = [];
  await page.routeWebSocket(/\/api\/live\?chat=chat$/, (route) => {
    socket = route;
    route.onMessage((data) => (typeof data === "string" ? frames.push(data) : sent.push(data)));
    route.send(
      JSON.stringify({ type: "ready", requestId: "live", inputRate: 16_000, outputRate: 24_000 }),
    );
  });
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  const { port } = server.address() as AddressInfo;
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.getByRole("button", { name: "Speak" }).click();

  await expect.poll(() => Buffer.concat(sent).length).toBeGreaterThan(2 * 16_000);
  // A busy machine may lose a piece of the tone; the next half second has none of that.
  const capturedHertz = () => {
    const captured = Buffer.concat(sent);
    const samples = Array.from({ length: captured.length / 2 }, (_, at) =>
      captured.readInt16LE(2 * at),
    );
    return frequencyOf(samples.slice(-8_000), 16_000);
  };
  await expect.poll(capturedHertz).toBeCloseTo(CAPTURED_HERTZ, -1);
  expect(new Set(sent.map(({ length }) => length))).toEqual(new Set([1_280]));

  socket?.send(tone(PLAYED_HERTZ, 20, 24_000));
  await page.waitForFunction(() => {
    const { samples, silent } = window.played();
    return silent < 256 && samples[0] !== 0;
  });
  const { samples: played, rate } = await page.evaluate(() => window.played());
  expect(frequencyOf(played, rate)).toBeCloseTo(PLAYED_HERTZ, -1);

  // In time of the audio clock, with the silence dated by its length: a busy machine changes neither.
  const milliseconds = await page.evaluate(async () => {
    const start = window.played().time;
    window.voice.interrupt();
    for (;;) {
      const { rate, silent, time } = window.played();
      if (silent >= 256) return 1_000 * Math.max(0, time - silent / rate - start);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  });
  expect(milliseconds).toBeLessThan(200);
  expect(frames).toEqual([JSON.stringify({ type: "interrupt", requestId: "live" })]);
  expect(errors).toEqual([]);
});
