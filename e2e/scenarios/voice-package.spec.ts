import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, type WebSocketRoute } from "@playwright/test";

// The client package by itself, as it is published, on a page with a strict policy.

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = mkdtempSync(join(tmpdir(), "sluicegate-voice-"));
const WAV = join(FOLDER, "tone.wav");
const HEARD = 1_000;
const SPOKEN = 440;

const PAGE = `<!doctype html><title>Voice</title><button>Speak</button><script type="module" src="/page.js"></script>`;

/** The page of a person who speaks, with a meter between the loudspeaker and the package. */
const SCRIPT = `
import { createChatTransport, Voice } from "/dist/index.js";

const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (target, ...rest) {
  if (target !== this.context.destination) return connect.call(this, target, ...rest);
  const analyser = new AnalyserNode(this.context, { fftSize: 8192 });
  window.heard = () => {
    const samples = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(samples);
    return { samples: [...samples], rate: this.context.sampleRate };
  };
  window.isSilent = () => window.heard().samples.slice(-256).every((sample) => sample === 0);
  connect.call(this, analyser);
  return connect.call(this, target, ...rest);
};

const transport = createChatTransport({
  kind: "bidi", api: "/api/chat", major: 7, live: { chatId: "chat" },
});
window.voice = new Voice({ transport, onTranscript: ({ text }) => { document.title = text; } });
document.querySelector("button").addEventListener("click", () => window.voice.start());
`;

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";

/** So many seconds of a tone as PCM16. */
function tone(hertz: number, seconds: number, rate: number): Buffer {
  const samples = Int16Array.from({ length: seconds * rate }, (_, at) =>
    Math.round(0x4000 * Math.sin((2 * Math.PI * hertz * at) / rate)),
  );
  return Buffer.from(samples.buffer);
}

function wav(pcm: Buffer, rate: number): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + pcm.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(2 * rate, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(pcm.length, 40);
  return Buffer.concat([head, pcm]);
}

/** The frequency of a tone, by how often it rises through zero. */
function hertzOf(samples: ArrayLike<number>, rate: number): number {
  const rises: number[] = [];
  for (let at = 1; at < samples.length; at += 1) {
    const [before, now] = [samples[at - 1] ?? 0, samples[at] ?? 0];
    if (before < 0 && now >= 0) rises.push(at - now / (now - before));
  }
  return ((rises.length - 1) * rate) / ((rises.at(-1) ?? 0) - (rises[0] ?? 0));
}

/** The page and the package, each file under the policy. */
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
  writeFileSync(WAV, wav(tone(HEARD, 5, 48_000), 48_000));
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
  heard(): { samples: number[]; rate: number };
  isSilent(): boolean;
  voice: { interrupt(): void; state(): { status: string }; levels: { input: number } };
}
declare const window: Window;

test("a page hears, speaks and is silent at once under a strict policy", async ({ page }) => {
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
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  const { port } = server.address() as AddressInfo;
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.getByRole("button", { name: "Speak" }).click();

  await expect.poll(() => Buffer.concat(sent).length).toBeGreaterThan(2 * 16_000);
  const said = Buffer.concat(sent);
  const samples = Array.from({ length: said.length / 2 }, (_, at) => said.readInt16LE(2 * at));
  expect(hertzOf(samples.slice(-8_000), 16_000)).toBeCloseTo(HEARD, -1);
  expect(new Set(sent.map(({ length }) => length))).toEqual(new Set([1_280]));

  socket?.send(tone(SPOKEN, 20, 24_000));
  await page.waitForFunction(() => !window.isSilent() && window.heard().samples[0] !== 0);
  const { samples: heard, rate } = await page.evaluate(() => window.heard());
  expect(hertzOf(heard, rate)).toBeCloseTo(SPOKEN, -1);

  const milliseconds = await page.evaluate(async () => {
    const from = performance.now();
    window.voice.interrupt();
    while (!window.isSilent()) await new Promise((resolve) => requestAnimationFrame(resolve));
    return performance.now() - from;
  });
  expect(milliseconds).toBeLessThan(200);
  expect(frames).toEqual([JSON.stringify({ type: "interrupt", requestId: "live" })]);
  expect(faults).toEqual([]);
});
