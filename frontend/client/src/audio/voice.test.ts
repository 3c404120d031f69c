import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type FakeAudio, type FakeNode, stubAudio } from "../../testing/audio.ts";
import { createBidiTransport } from "../bidi/create-bidi-transport.ts";
import { ScriptedSockets } from "../testing/scripted-sockets.ts";
import { Voice, type VoiceOptions } from "./voice.ts";

const READY = { type: "ready", requestId: "live", inputRate: 16_000, outputRate: 24_000 };

let audio: FakeAudio;
beforeEach(() => {
  audio = stubAudio();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const waitFor = (assertions: () => void) => vi.waitFor(assertions, { timeout: 30_000 });

interface Started {
  readonly voice: Voice;
  readonly sockets: ScriptedSockets;
  readonly microphone: FakeNode;
  readonly speaker: FakeNode;
  /** The commands to the loudspeaker: the byte length of a block, or `clear`. */
  commands(): (number | string)[];
}

function createVoice(sockets: ScriptedSockets, options: Partial<VoiceOptions> = {}): Voice {
  const transport = createBidiTransport({
    api: "https://page/api/chat?key=1",
    major: 7,
    live: { chatId: "a chat" },
    webSocket: sockets.webSocket,
    reconnect: { initialDelay: 0 },
  });
  return new Voice({ transport, ...options });
}

/** A voice with the status `on`. */
async function startVoice(options: Partial<VoiceOptions> = {}): Promise<Started> {
  const sockets = new ScriptedSockets();
  const voice = createVoice(sockets, options);
  sockets.onConnect = (socket) => {
    socket.accept();
    socket.emitFrame(READY);
  };
  await voice.start();
  const speaker = audio.nodes.get("sluicegate-playback");
  const microphone = audio.nodes.get("sluicegate-capture");
  if (speaker === undefined || microphone === undefined) throw new Error("no worklets");
  const commands = () =>
    speaker.port.posted.map(({ samples }) =>
      samples === undefined ? "clear" : (samples as ArrayBuffer).byteLength,
    );
  return { voice, sockets, microphone, speaker, commands };
}

test("start opens the live socket, the loudspeaker and the microphone", async () => {
  const { voice, sockets, microphone, speaker } = await startVoice();

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
  expect(audio.constraints).toEqual([
    { audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } },
  ]);
});

test("the worklet URLs and the microphone constraints can be configured", async () => {
  await startVoice({
    worklets: { capture: "/c.js", playback: "/p.js" },
    constraints: { deviceId: "d1", noiseSuppression: false },
  });

  expect(audio.contexts.flatMap(({ modules }) => modules)).toEqual(["/p.js", "/c.js"]);
  expect(audio.constraints).toEqual([
    { audio: { channelCount: 1, echoCancellation: true, noiseSuppression: false, deviceId: "d1" } },
  ]);
});

test("captured audio is sent unless muted", async () => {
  const { voice, sockets, microphone } = await startVoice();
  const capture = (bytes: number, level: number) =>
    microphone.emit({ samples: new ArrayBuffer(bytes), level });
  capture(2, 0.5);
  expect(voice.levels).toEqual({ input: 0.5, output: 0 });
  voice.mute();
  expect([voice.levels.input, voice.state().isMuted]).toEqual([0, true]);
  capture(4, 0.5);
  voice.mute(false);
  capture(6, 0.25);

  expect(sockets.last.audio.map(({ byteLength }) => byteLength)).toEqual([2, 6]);
  expect(voice.levels.input).toBe(0.25);
});

test("received audio is played, and its level is reported", async () => {
  const { voice, sockets, speaker, commands } = await startVoice();
  const listener = vi.fn();
  voice.subscribe(listener);
  sockets.last.emitBinary(new ArrayBuffer(2));
  sockets.last.emitBinary(new ArrayBuffer(4));
  speaker.emit({ level: 0.4, queued: 1 });

  expect(commands()).toEqual([2, 4]);
  expect([voice.levels.output, voice.state().isSpeaking]).toEqual([0.4, true]);
  speaker.emit({ level: 0.3, queued: 0.5 });
  speaker.emit({ level: 0, queued: 0 });
  expect([voice.levels.output, voice.state().isSpeaking]).toEqual([0, false]);
  expect(listener).toHaveBeenCalledTimes(2);
});

test("an interruption clears the queue and discards the rest of the answer", async () => {
  const { voice, sockets, commands } = await startVoice();
  sockets.last.emitBinary(new ArrayBuffer(2));
  voice.interrupt();
  sockets.last.emitBinary(new ArrayBuffer(4));
  expect(sockets.frames).toEqual([{ type: "interrupt", requestId: "live" }]);
  expect(commands()).toEqual([2, "clear"]);
  sockets.last.emitFrame({ type: "interrupted", requestId: "live" });
  sockets.last.emitBinary(new ArrayBuffer(6));

  expect(commands()).toEqual([2, "clear", "clear", 6]);
});

test.each([
  { title: "the answer was received completely", before: true },
  { title: "the answer ends without an interrupted event", before: false },
])("the next answer is played after an interruption where $title", async ({ before }) => {
  const { voice, sockets, commands } = await startVoice();
  const complete = { type: "turn-complete", requestId: "live" };
  sockets.last.emitBinary(new ArrayBuffer(2));
  if (before) sockets.last.emitFrame(complete);
  voice.interrupt();
  if (!before) sockets.last.emitFrame(complete);
  sockets.last.emitBinary(new ArrayBuffer(6));

  expect(commands()).toEqual([2, "clear", 6]);
});

test("an interrupted event clears the queue", async () => {
  const { sockets, commands } = await startVoice();
  sockets.last.emitBinary(new ArrayBuffer(2));
  sockets.last.emitFrame({ type: "interrupted", requestId: "live" });

  expect(commands()).toEqual([2, "clear"]);
});

test("transcripts and turns are reported with the text of the user", async () => {
  const onTranscript = vi.fn();
  const onTurn = vi.fn();
  const { sockets } = await startVoice({ onTranscript, onTurn });
  const transcript = { messageId: "u1", role: "user", text: "Pay", final: false };
  sockets.last.emitFrame({ type: "transcript", requestId: "live", ...transcript });
  sockets.last.emitFrame({
    type: "transcript",
    requestId: "live",
    ...transcript,
    text: "Pay 5.",
    final: true,
  });
  sockets.last.emitFrame({ type: "turn", requestId: "live", messageId: "m1", userMessageId: "u1" });
  sockets.last.emitFrame({ type: "turn", requestId: "live", messageId: "m2", userMessageId: "u2" });

  expect(onTranscript.mock.calls).toEqual([
    [transcript],
    [{ ...transcript, text: "Pay 5.", final: true }],
  ]);
  expect(onTurn.mock.calls).toEqual([
    [{ messageId: "m1", userMessageId: "u1", text: "Pay 5." }],
    [{ messageId: "m2", userMessageId: "u2", text: "" }],
  ]);
});

test("stop closes the socket, the loudspeaker and the microphone", async () => {
  const { voice, sockets, commands } = await startVoice();
  const [socket] = sockets.all;
  await voice.stop();

  expect(voice.state()).toMatchObject({ status: "off", error: undefined });
  expect(socket?.closeCode).toBe(1000);
  expect(audio.contexts.map(({ state }) => state)).toEqual(["closed", "closed"]);
  expect(audio.tracks.map(({ stopped }) => stopped)).toEqual([true]);
  socket?.emitBinary(new ArrayBuffer(2));
  voice.interrupt();
  expect(commands()).toEqual([]);
  await voice.start();
  expect([voice.state().status, sockets.all.length]).toEqual(["on", 2]);
});

test("a second start has no effect", async () => {
  const { voice, sockets } = await startVoice();
  await voice.start();
  expect([sockets.all.length, audio.contexts.length]).toEqual([1, 2]);
});

test("a newer connection of the user takes the voice over", async () => {
  const { voice, sockets } = await startVoice();
  sockets.last.emitClose(4409, "taken_over");
  await waitFor(() => expect(voice.state().status).toBe("off"));

  expect(voice.state()).toMatchObject({ status: "off", error: { code: "taken_over" } });
  expect(audio.contexts.map(({ state }) => state)).toEqual(["closed", "closed"]);
  expect(sockets.all).toHaveLength(1);
});

test("a resume opens no connection, which would take the chat over", async () => {
  const sockets = new ScriptedSockets();
  const { webSocket } = sockets;
  const live = { chatId: "chat" };
  const transport = createBidiTransport({
    api: "https://page/api/chat",
    major: 7,
    live,
    webSocket,
  });
  expect(await transport.reconnectToStream({ chatId: "chat" })).toBeNull();
  expect(sockets.all).toHaveLength(0);
});

describe("a failed start reports the error and closes everything", () => {
  test("when the microphone is not permitted", async () => {
    audio.permissionError = new DOMException("Permission denied", "NotAllowedError");
    await expect(startVoice()).rejects.toThrow("Permission denied");
    expect(audio.contexts.map(({ state }) => state)).toEqual(["closed"]);
  });

  test("when the chat is open elsewhere", async () => {
    const sockets = new ScriptedSockets();
    const voice = createVoice(sockets);
    const refused = { errorText: "This chat is open elsewhere.", code: "held_elsewhere" };
    sockets.onConnect = (socket) => {
      socket.accept();
      socket.emitFrame({ type: "error", requestId: "live", ...refused });
      socket.emitClose(4409);
    };

    await expect(voice.start()).rejects.toThrow("This chat is open elsewhere.");
    expect(voice.state()).toMatchObject({ status: "off", error: { code: "held_elsewhere" } });
    expect(sockets.all).toHaveLength(1);
  });

  test("when the live run fails immediately", async () => {
    const sockets = new ScriptedSockets();
    const voice = createVoice(sockets);
    const failed = { errorText: "The model failed; id 1.", code: "internal" };
    sockets.onConnect = (socket) => {
      socket.accept();
      socket.emitFrame({ type: "error", requestId: "live", ...failed });
      socket.emitClose(1011);
    };

    await expect(voice.start()).rejects.toThrow("The model failed; id 1.");
    expect(voice.state()).toMatchObject({ status: "off", error: { code: "internal" } });
  });

  test("when it is stopped while starting", async () => {
    const sockets = new ScriptedSockets();
    const voice = createVoice(sockets);
    const starting = voice.start();
    await waitFor(() => expect(sockets.all).toHaveLength(1));
    const stopped = voice.stop();
    sockets.last.emitFrame(READY);
    await Promise.all([stopped, starting]);

    expect(voice.state().status).toBe("off");
    expect(audio.contexts.every(({ state }) => state === "closed")).toBe(true);
  });
});

test("a refused frame is reported until the next ready event", async () => {
  const { voice, sockets } = await startVoice();
  const refused = { errorText: "That is no picture.", code: "malformed" };
  sockets.last.emitFrame({ type: "error", requestId: "live", ...refused });
  expect(voice.state()).toMatchObject({ status: "on", error: { message: "That is no picture." } });
  sockets.last.emitFrame(READY);
  expect(voice.state()).toMatchObject({ status: "on", error: undefined });
});

test("a voice survives a lost connection and ends when the server refuses it", async () => {
  const { voice, sockets, microphone } = await startVoice();
  sockets.last.emitClose(1006);
  expect(voice.state().isReconnecting).toBe(true);
  await waitFor(() => expect(sockets.all).toHaveLength(2));
  await waitFor(() => expect(sockets.last.readyState).toBe(1));
  await waitFor(() => expect(voice.state().isReconnecting).toBe(false));
  microphone.emit({ samples: new ArrayBuffer(2), level: 0.5 });
  expect(sockets.last.audio).toHaveLength(1);
  sockets.last.emitClose(4401);

  await waitFor(() => expect(voice.state().status).toBe("off"));
  expect(voice.state().error?.message).toContain("sign in again");
});
