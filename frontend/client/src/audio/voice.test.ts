import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Audio, audioBrowser, type FakeNode } from "../../testing/audio.ts";
import { FakeSockets } from "../../testing/fake-sockets.ts";
import { createChatTransport } from "../chat-transport.ts";
import { Voice, type VoiceOptions } from "./voice.ts";

const READY = { type: "ready", requestId: "live", inputRate: 16_000, outputRate: 24_000 };

let audio: Audio;
beforeEach(() => {
  audio = audioBrowser();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

interface Spoken {
  readonly voice: Voice;
  readonly sockets: FakeSockets;
  readonly microphone: FakeNode;
  readonly speaker: FakeNode;
  /** What the loudspeaker was told, as the numbers of buffers or `silence`. */
  told(): (number | string)[];
}

function live(sockets: FakeSockets, options: Partial<VoiceOptions> = {}): Voice {
  const transport = createChatTransport({
    kind: "bidi",
    api: "https://page/api/chat?key=1",
    major: 7,
    live: { chatId: "a chat" },
    webSocket: sockets.webSocket,
  });
  return new Voice({ transport, ...options });
}

/** A voice that is on. */
async function on(options: Partial<VoiceOptions> = {}): Promise<Spoken> {
  const sockets = new FakeSockets();
  const voice = live(sockets, options);
  sockets.opened = (socket) => {
    socket.accept();
    socket.say(READY);
  };
  await voice.start();
  const speaker = audio.nodes.get("sluicegate-playback");
  const microphone = audio.nodes.get("sluicegate-capture");
  if (speaker === undefined || microphone === undefined) throw new Error("no worklets");
  const told = () =>
    speaker.port.posted.map(({ samples }) =>
      samples === undefined ? "silence" : (samples as ArrayBuffer).byteLength,
    );
  return { voice, sockets, microphone, speaker, told };
}

test("a voice opens the live socket of its chat, the loudspeaker and the microphone", async () => {
  const { voice, sockets, microphone, speaker } = await on();

  expect(voice.state()).toMatchObject({ status: "on", isMuted: false, isSpeaking: false });
  expect(sockets.last.url).toBe("wss://page/api/live?key=1&chat=a+chat");
  expect(sockets.last.protocols).toEqual(["sluicegate.live.v1"]);
  expect(sockets.last.binaryType).toBe("arraybuffer");
  expect(audio.contexts.map(({ sampleRate }) => sampleRate)).toEqual([24_000, 16_000]);
  expect(audio.contexts.map(({ state }) => state)).toEqual(["running", "running"]);
  expect(audio.contexts.flatMap(({ modules }) => modules)).toEqual([
    expect.stringMatching(/^file:.*\/audio\/playback-worklet\.js$/),
    expect.stringMatching(/^file:.*\/audio\/capture-worklet\.js$/),
  ]);
  expect(speaker.options.processorOptions).toEqual({ rate: 24_000 });
  expect(microphone.options.processorOptions).toEqual({ rate: 16_000, block: 640 });
  expect(audio.asked).toEqual([
    { audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } },
  ]);
});

test("where worklets and microphone are can be said", async () => {
  await on({
    worklets: { capture: "/c.js", playback: "/p.js" },
    constraints: { deviceId: "d1", noiseSuppression: false },
  });

  expect(audio.contexts.flatMap(({ modules }) => modules)).toEqual(["/p.js", "/c.js"]);
  expect(audio.asked).toEqual([
    { audio: { channelCount: 1, echoCancellation: true, noiseSuppression: false, deviceId: "d1" } },
  ]);
});

test("what the microphone hears goes out, and nothing while it is muted", async () => {
  const { voice, sockets, microphone } = await on();
  const hear = (bytes: number, level: number) =>
    microphone.say({ samples: new ArrayBuffer(bytes), level });
  hear(2, 0.5);
  expect(voice.levels).toEqual({ input: 0.5, output: 0 });
  voice.mute();
  expect([voice.levels.input, voice.state().isMuted]).toEqual([0, true]);
  hear(4, 0.5);
  voice.mute(false);
  hear(6, 0.25);

  expect(sockets.last.audio.map(({ byteLength }) => byteLength)).toEqual([2, 6]);
  expect(voice.levels.input).toBe(0.25);
});

test("what comes in is played, and a meter can follow", async () => {
  const { voice, sockets, speaker, told } = await on();
  const heard = vi.fn();
  voice.subscribe(heard);
  sockets.last.bytes(new ArrayBuffer(2));
  sockets.last.bytes(new ArrayBuffer(4));
  speaker.say({ level: 0.4, waiting: 1 });

  expect(told()).toEqual([2, 4]);
  expect([voice.levels.output, voice.state().isSpeaking]).toEqual([0.4, true]);
  speaker.say({ level: 0.3, waiting: 0.5 });
  speaker.say({ level: 0, waiting: 0 });
  expect([voice.levels.output, voice.state().isSpeaking]).toEqual([0, false]);
  expect(heard).toHaveBeenCalledTimes(2);
});

test("an interruption is silent at once, and so is what still comes of that answer", async () => {
  const { voice, sockets, told } = await on();
  sockets.last.bytes(new ArrayBuffer(2));
  voice.interrupt();
  sockets.last.bytes(new ArrayBuffer(4));
  expect(sockets.frames).toEqual([{ type: "interrupt", requestId: "live" }]);
  expect(told()).toEqual([2, "silence"]);
  sockets.last.say({ type: "interrupted", requestId: "live" });
  sockets.last.bytes(new ArrayBuffer(6));

  expect(told()).toEqual([2, "silence", "silence", 6]);
});

test.each([
  { title: "the answer had come whole", before: true },
  { title: "the answer ends without a word about it", before: false },
])("the next answer is heard after an interruption where $title", async ({ before }) => {
  const { voice, sockets, told } = await on();
  const complete = { type: "turn-complete", requestId: "live" };
  sockets.last.bytes(new ArrayBuffer(2));
  if (before) sockets.last.say(complete);
  voice.interrupt();
  if (!before) sockets.last.say(complete);
  sockets.last.bytes(new ArrayBuffer(6));

  expect(told()).toEqual([2, "silence", 6]);
});

test("speaking over the agent silences it", async () => {
  const { sockets, told } = await on();
  sockets.last.bytes(new ArrayBuffer(2));
  sockets.last.say({ type: "interrupted", requestId: "live" });

  expect(told()).toEqual([2, "silence"]);
});

test("transcripts and turns are told, with what the user has said", async () => {
  const onTranscript = vi.fn();
  const onTurn = vi.fn();
  const { sockets } = await on({ onTranscript, onTurn });
  const said = { messageId: "u1", role: "user", text: "Pay", final: false };
  sockets.last.say({ type: "transcript", requestId: "live", ...said });
  sockets.last.say({ type: "transcript", requestId: "live", ...said, text: "Pay 5.", final: true });
  sockets.last.say({ type: "turn", requestId: "live", messageId: "m1", userMessageId: "u1" });
  sockets.last.say({ type: "turn", requestId: "live", messageId: "m2", userMessageId: "u2" });

  expect(onTranscript.mock.calls).toEqual([[said], [{ ...said, text: "Pay 5.", final: true }]]);
  expect(onTurn.mock.calls).toEqual([
    [{ messageId: "m1", userMessageId: "u1", text: "Pay 5." }],
    [{ messageId: "m2", userMessageId: "u2", text: "" }],
  ]);
});

test("a voice that stops lets go of everything", async () => {
  const { voice, sockets, told } = await on();
  const [socket] = sockets.all;
  await voice.stop();

  expect(voice.state()).toMatchObject({ status: "off", error: undefined });
  expect(socket?.closedWith).toBe(1000);
  expect(audio.contexts.map(({ state }) => state)).toEqual(["closed", "closed"]);
  expect(audio.tracks.map(({ stopped }) => stopped)).toEqual([true]);
  socket?.bytes(new ArrayBuffer(2));
  voice.interrupt();
  expect(told()).toEqual([]);
  await voice.start();
  expect([voice.state().status, sockets.all.length]).toEqual(["on", 2]);
});

test("a second start changes nothing", async () => {
  const { voice, sockets } = await on();
  await voice.start();
  expect([sockets.all.length, audio.contexts.length]).toEqual([1, 2]);
});

describe("a voice that cannot begin says why and lets go", () => {
  test("where the microphone is not allowed", async () => {
    audio.refusal = new DOMException("Permission denied", "NotAllowedError");
    await expect(on()).rejects.toThrow("Permission denied");
    expect(audio.contexts.map(({ state }) => state)).toEqual(["closed"]);
  });

  test("where the chat is open elsewhere", async () => {
    const sockets = new FakeSockets();
    const voice = live(sockets);
    const refused = { errorText: "This chat is open elsewhere.", code: "held_elsewhere" };
    sockets.opened = (socket) => {
      socket.accept();
      socket.say({ type: "error", requestId: "live", ...refused });
      socket.end(4409);
    };

    await expect(voice.start()).rejects.toThrow("This chat is open elsewhere.");
    expect(voice.state()).toMatchObject({ status: "off", error: { code: "held_elsewhere" } });
    expect(sockets.all).toHaveLength(1);
  });

  test("where the live run fails at once", async () => {
    const sockets = new FakeSockets();
    const voice = live(sockets);
    const failed = { errorText: "The model failed; id 1.", code: "internal" };
    sockets.opened = (socket) => {
      socket.accept();
      socket.say({ type: "error", requestId: "live", ...failed });
      socket.end(1011);
    };

    await expect(voice.start()).rejects.toThrow("The model failed; id 1.");
    expect(voice.state()).toMatchObject({ status: "off", error: { code: "internal" } });
  });

  test("where it was stopped meanwhile", async () => {
    const sockets = new FakeSockets();
    const voice = live(sockets);
    const starting = voice.start();
    await vi.waitFor(() => expect(sockets.all).toHaveLength(1));
    const stopped = voice.stop();
    sockets.last.say(READY);
    await Promise.all([stopped, starting]);

    expect(voice.state().status).toBe("off");
    expect(audio.contexts.every(({ state }) => state === "closed")).toBe(true);
  });
});

test("a voice goes on when a frame of it was refused, and says so until it is well again", async () => {
  const { voice, sockets } = await on();
  const refused = { errorText: "That is no picture.", code: "malformed" };
  sockets.last.say({ type: "error", requestId: "live", ...refused });
  expect(voice.state()).toMatchObject({ status: "on", error: { message: "That is no picture." } });
  sockets.last.say(READY);
  expect(voice.state()).toMatchObject({ status: "on", error: undefined });
});

test("a voice goes on when its connection breaks, and ends when the server refuses", async () => {
  const { voice, sockets, microphone } = await on();
  sockets.last.end(1006);
  await vi.waitFor(() => expect(sockets.all).toHaveLength(2), { timeout: 3_000 });
  await vi.waitFor(() => expect(sockets.last.readyState).toBe(1));
  microphone.say({ samples: new ArrayBuffer(2), level: 0.5 });
  expect(sockets.last.audio).toHaveLength(1);
  sockets.last.end(4401);

  await vi.waitFor(() => expect(voice.state().status).toBe("off"));
  expect(voice.state().error?.message).toContain("sign in again");
});
