import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CLIENTS, type ScriptedChat, VERSIONS } from "../testing/scripted-chat.ts";
import { type PlayerOptions, PlayerTransport } from "./player-transport.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const GOLDENS = join(import.meta.dirname, "../../../e2e/goldens");

type ChatLike = ScriptedChat["chat"] & { readonly error: Error | undefined };
type Parts = readonly { type: string; state?: string; text?: string; approval?: { id: string } }[];

function golden(name: string): string {
  return readFileSync(join(GOLDENS, `${name}.jsonl`), "utf8");
}

function stored(name: string): { role: string; parts: Parts }[] {
  return JSON.parse(readFileSync(join(GOLDENS, `${name}.messages.json`), "utf8"));
}

function chatOf(
  version: keyof typeof CLIENTS,
  recording: string,
  options?: PlayerOptions,
): ChatLike {
  const Chat = CLIENTS[version].Chat as unknown as new (options: object) => ChatLike;
  return new Chat({
    id: "another-chat",
    transport: new PlayerTransport(recording, options),
    sendAutomaticallyWhen: sendAutomaticallyWhen({ clientTools: ["locate"] }),
  });
}

function partsOf(chat: ChatLike): Parts {
  return chat.messages.flatMap(({ parts }) => parts as Parts);
}

async function rest(chat: ChatLike): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    await new Promise((resolve) => setImmediate(resolve));
    quiet = chat.status === "ready" || chat.status === "error" ? quiet + 1 : 0;
  }
}

async function say(chat: ChatLike, text: string): Promise<void> {
  await chat.sendMessage({ text });
  await rest(chat);
}

async function answer(chat: ChatLike, approved: boolean, reason?: string): Promise<void> {
  const asking = partsOf(chat).find(({ state }) => state === "approval-requested");
  const id = asking?.approval?.id ?? "none asks";
  await chat.addToolApprovalResponse({ id, approved, ...(reason && { reason }) });
  await rest(chat);
}

/** What a message shows. */
function seen(parts: Parts): string[] {
  return parts
    .filter(({ type }) => type !== "step-start" && !type.startsWith("data-"))
    .map(({ type, state, text }) => (text === undefined ? `${type} ${state}` : text));
}

describe.each(VERSIONS)("a client of ai %s", (version) => {
  const mark = version.startsWith("6") ? ".ai-6" : "";

  test("has the recorded conversation, by itself, and ends with the stored message", async () => {
    const name = `deferred/call/around${mark}`;
    const chat = chatOf(version, golden(name));
    await say(chat, "story:text_around");
    await answer(chat, true);
    await answer(chat, true);
    expect(chat.status).toBe("ready");
    expect(seen(chat.messages[1]?.parts as Parts)).toEqual(seen(stored(name)[1]?.parts ?? []));
  });

  test("is told of the first difference, and goes on with the right words", async () => {
    const chat = chatOf(version, golden(`deferred/call/denied${mark}`));
    await say(chat, "story:approval");
    await answer(chat, false, "too late");
    expect(chat.error?.message).toBe(
      "Turn 2 differs from the recording: the reason given to pay (adk-2) is " +
        '"too late" and was "too expensive".',
    );
  });
});

describe("a player", () => {
  const recording = golden("deferred/call/approved");
  const lines = recording.trimEnd().split("\n");

  function asked(text: string): never {
    const message = { id: "u", role: "user", parts: [{ type: "text", text }] };
    return {
      chatId: "c",
      trigger: "submit-message",
      messageId: undefined,
      messages: [message],
    } as never;
  }

  async function chunksOf(stream: ReadableStream<unknown>): Promise<unknown[]> {
    const found: unknown[] = [];
    for await (const chunk of stream as unknown as AsyncIterable<unknown>) found.push(chunk);
    return found;
  }

  test("gives each response as it was recorded", async () => {
    const player = new PlayerTransport(recording);
    const chunks = await chunksOf(await player.sendMessages(asked("story:approval")));
    const kept = lines.map((line) => JSON.parse(line)).filter(({ turn }) => turn === 1);
    const bodies = kept.filter(({ kind }) => kind === "chunk").map(({ body }) => body);
    expect(chunks).toEqual(bodies);
  });

  test("has a place of its own for each chat", async () => {
    const player = new PlayerTransport(recording);
    await player.sendMessages(asked("story:approval"));
    await player.sendMessages({ ...(asked("story:approval") as object), chatId: "d" } as never);
    await expect(player.sendMessages(asked("story:approval"))).rejects.toThrow(
      'Turn 2 differs from the recording: the message\'s role is "user" and was "assistant".',
    );
  });

  test("says that the recording has ended", async () => {
    const player = new PlayerTransport(golden("deferred/call/plain"));
    await player.sendMessages(asked("story:plain"));
    await expect(player.sendMessages(asked("story:plain"))).rejects.toThrow(
      "The recording ends after turn 1; start a new chat to play it again.",
    );
  });

  test("leaves the pauses only where it is told to, and cuts long ones", async () => {
    const slow = recording
      .replaceAll('"delta_ms":0', '"delta_ms":40')
      .replace('"kind":"chunk","delta_ms":40', '"kind":"chunk","delta_ms":60000');
    const waited: number[] = [];
    const pause = async (milliseconds: number): Promise<void> => {
      waited.push(milliseconds);
    };
    for (const paced of [false, true]) {
      const player = new PlayerTransport(slow, { paced, pause });
      await chunksOf(await player.sendMessages(asked("story:approval")));
    }
    expect(waited.slice(0, 2)).toEqual([3_000, 40]);
    expect(new Set(waited.slice(1))).toEqual(new Set([40]));
  });

  test("ends a stream that is aborted", async () => {
    const player = new PlayerTransport(recording);
    const stop = new AbortController();
    const options = { ...(asked("story:approval") as object), abortSignal: stop.signal };
    const stream = await player.sendMessages(options as never);
    stop.abort(new Error("stopped"));
    await expect(chunksOf(stream)).rejects.toThrow("stopped");
    await expect(player.sendMessages(options as never)).rejects.toThrow("stopped");
  });

  test("plays a resume and a refusal where they were recorded", async () => {
    const [header = "", request = "", ...others] = lines;
    const chunk = others.find((line) => line.includes('"kind":"chunk"')) ?? "";
    const turned = (line: string, turn: number, body?: object): string => {
      const entry = JSON.parse(line);
      return JSON.stringify({ ...entry, turn, ...(body && { body }) });
    };
    const refusal = { type: "error", errorText: "Decided already.", code: "already_decided" };
    const text = [
      header,
      request,
      turned(request, 2, { type: "stop", id: "chat" }),
      turned(request, 3, { type: "resume", id: "chat" }),
      turned(chunk, 3),
      turned(request, 4),
      turned(request.replace('"kind":"request"', '"kind":"frame"'), 4, refusal),
      turned(request, 5).slice(0, -9),
    ].join("\n");
    const player = new PlayerTransport(text);
    expect(await player.reconnectToStream({ chatId: "c" })).toBeNull();
    await player.sendMessages(asked("story:approval"));
    const resumed = await player.reconnectToStream({ chatId: "c" });
    expect(await chunksOf(resumed as ReadableStream<unknown>)).toEqual([JSON.parse(chunk).body]);
    await expect(player.sendMessages(asked("story:approval"))).rejects.toThrow("Decided already.");
    await expect(player.sendMessages(asked("story:approval"))).rejects.toThrow("ends after turn 4");
  });

  test.each([
    ["", "Line 1 of the recording is not an object in JSON."],
    ["7\n", "Line 1 of the recording is not an object in JSON."],
    ["{}\n", "This is not a sluicegate-recording of version 1."],
    [`${lines[0]}\n[\n`, "Line 2 of the recording is not an object in JSON."],
    [`${lines[0]?.replace('"version":1', '"version":2')}\n`, "recording of version 1"],
  ])("refuses what is no recording: %j", (text, sentence) => {
    expect(() => new PlayerTransport(text)).toThrow(sentence);
  });

  test.each([
    [{ edits: { a: { n: 1 } } }, 'what it says under edits is {"a":{"n":1}} and was not there'],
    [{ edits: {}, remember: {} }, undefined],
  ])("compares what is staged: %j", async (body, wrong) => {
    const player = new PlayerTransport(recording);
    await player.sendMessages(asked("story:approval"));
    const second = JSON.parse(lines.find((line) => line.includes('"turn":2')) ?? "").body;
    const { message, messageId } = second;
    const options = { ...(asked("") as object), messages: [message], messageId, body };
    const sent = player.sendMessages(options as never);
    if (wrong === undefined) await sent;
    else await expect(sent).rejects.toThrow(wrong);
  });

  test("takes anything for what was redacted", async () => {
    const player = new PlayerTransport(recording.replace("story:approval", "[redacted]"));
    await player.sendMessages(asked("anything"));
  });
});
