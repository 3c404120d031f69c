import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CLIENTS, VERSIONS } from "../../testing/ai-sdk-versions.ts";
import type { ChatLike as ScriptedChatLike } from "../../testing/scripted-chat.ts";
import { whenIdle } from "../../testing/when-idle.ts";
import { sendAutomaticallyWhen } from "../send-automatically.ts";
import { type PlayerOptions, PlayerTransport } from "./replay-transport.ts";

const GOLDENS = join(import.meta.dirname, "../../../../e2e/goldens");

type ChatLike = ScriptedChatLike & { readonly error: Error | undefined };
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

async function send(chat: ChatLike, text: string): Promise<void> {
  await chat.sendMessage({ text });
  await whenIdle(chat);
}

async function decide(chat: ChatLike, approved: boolean, reason?: string): Promise<void> {
  const pending = partsOf(chat).find(({ state }) => state === "approval-requested");
  const id = pending?.approval?.id ?? "none";
  await chat.addToolApprovalResponse({ id, approved, ...(reason && { reason }) });
  await whenIdle(chat);
}

/** The visible parts of a message. */
function visibleParts(parts: Parts): string[] {
  return parts
    .filter(({ type }) => type !== "step-start" && !type.startsWith("data-"))
    .map(({ type, state, text }) => (text === undefined ? `${type} ${state}` : text));
}

describe.each(VERSIONS)("a client of ai %s", (version) => {
  const suffix = version.startsWith("6") ? ".ai-6" : "";

  test("replays a conversation that ends with the stored message", async () => {
    const name = `deferred/call/around${suffix}`;
    const chat = chatOf(version, golden(name));
    await send(chat, "story:text_around");
    await decide(chat, true);
    await decide(chat, true);
    expect(chat.status).toBe("ready");
    expect(visibleParts(chat.messages[1]?.parts as Parts)).toEqual(
      visibleParts(stored(name)[1]?.parts ?? []),
    );
  });

  test("gets an error that names the first difference", async () => {
    const chat = chatOf(version, golden(`deferred/call/denied${suffix}`));
    await send(chat, "story:approval");
    await decide(chat, false, "too late");
    expect(chat.error?.message).toBe(
      "Turn 2 differs from the recording: the reason given to pay (adk-2) is " +
        '"too late" and was "too expensive".',
    );
  });
});

describe("a player transport", () => {
  const recording = golden("deferred/call/approved");
  const lines = recording.trimEnd().split("\n");

  function userRequest(text: string): never {
    const message = { id: "u", role: "user", parts: [{ type: "text", text }] };
    return {
      chatId: "c",
      trigger: "submit-message",
      messageId: undefined,
      messages: [message],
    } as never;
  }

  async function chunksOf(stream: ReadableStream<unknown>): Promise<unknown[]> {
    const chunks: unknown[] = [];
    for await (const chunk of stream as unknown as AsyncIterable<unknown>) chunks.push(chunk);
    return chunks;
  }

  test("replays each response as it was recorded", async () => {
    const player = new PlayerTransport(recording);
    const chunks = await chunksOf(await player.sendMessages(userRequest("story:approval")));
    const kept = lines.map((line) => JSON.parse(line)).filter(({ turn }) => turn === 1);
    const bodies = kept.filter(({ kind }) => kind === "chunk").map(({ body }) => body);
    expect(chunks).toEqual(bodies);
  });

  test("replays each chat from the beginning", async () => {
    const player = new PlayerTransport(recording);
    await player.sendMessages(userRequest("story:approval"));
    await player.sendMessages({
      ...(userRequest("story:approval") as object),
      chatId: "d",
    } as never);
    await expect(player.sendMessages(userRequest("story:approval"))).rejects.toThrow(
      'Turn 2 differs from the recording: the message\'s role is "user" and was "assistant".',
    );
  });

  test("fails at the end of the recording", async () => {
    const player = new PlayerTransport(golden("deferred/call/plain"));
    await player.sendMessages(userRequest("story:plain"));
    await expect(player.sendMessages(userRequest("story:plain"))).rejects.toThrow(
      "The recording ends after turn 1; start a new chat to play it again.",
    );
  });

  test("keeps the pauses only if paced, and shortens long ones", async () => {
    const slow = recording
      .replaceAll('"delta_ms":0', '"delta_ms":40')
      .replace('"kind":"chunk","delta_ms":40', '"kind":"chunk","delta_ms":60000');
    const delays: number[] = [];
    const pause = async (milliseconds: number): Promise<void> => {
      delays.push(milliseconds);
    };
    for (const paced of [false, true]) {
      const player = new PlayerTransport(slow, { paced, pause });
      await chunksOf(await player.sendMessages(userRequest("story:approval")));
    }
    expect(delays.slice(0, 2)).toEqual([3_000, 40]);
    expect(new Set(delays.slice(1))).toEqual(new Set([40]));
  });

  test("fails an aborted stream", async () => {
    const player = new PlayerTransport(recording);
    const stop = new AbortController();
    const options = { ...(userRequest("story:approval") as object), abortSignal: stop.signal };
    const stream = await player.sendMessages(options as never);
    stop.abort(new Error("stopped"));
    await expect(chunksOf(stream)).rejects.toThrow("stopped");
    await expect(player.sendMessages(options as never)).rejects.toThrow("stopped");
  });

  test("replays a resume and a refusal", async () => {
    const [header = "", request = "", ...others] = lines;
    const chunk = others.find((line) => line.includes('"kind":"chunk"')) ?? "";
    const withTurn = (line: string, turn: number, body?: object): string => {
      const entry = JSON.parse(line);
      return JSON.stringify({ ...entry, turn, ...(body && { body }) });
    };
    const refusal = { type: "error", errorText: "Decided already.", code: "already_decided" };
    const text = [
      header,
      request,
      withTurn(request, 2, { type: "stop", id: "chat" }),
      withTurn(request, 3, { type: "resume", id: "chat" }),
      withTurn(chunk, 3),
      withTurn(request, 4),
      withTurn(request.replace('"kind":"request"', '"kind":"frame"'), 4, refusal),
      withTurn(request, 5).slice(0, -9),
    ].join("\n");
    const player = new PlayerTransport(text);
    expect(await player.reconnectToStream({ chatId: "c" })).toBeNull();
    await player.sendMessages(userRequest("story:approval"));
    const resumed = await player.reconnectToStream({ chatId: "c" });
    expect(await chunksOf(resumed as ReadableStream<unknown>)).toEqual([JSON.parse(chunk).body]);
    await expect(player.sendMessages(userRequest("story:approval"))).rejects.toThrow(
      "Decided already.",
    );
    await expect(player.sendMessages(userRequest("story:approval"))).rejects.toThrow(
      "ends after turn 4",
    );
  });

  test.each([
    ["", "Line 1 of the recording is not an object in JSON."],
    ["7\n", "Line 1 of the recording is not an object in JSON."],
    ["{}\n", "This is not a sluicegate-recording of version 1."],
    [`${lines[0]}\n[\n`, "Line 2 of the recording is not an object in JSON."],
    [`${lines[0]?.replace('"version":1', '"version":2')}\n`, "recording of version 1"],
  ])("refuses an invalid recording: %j", (text, sentence) => {
    expect(() => new PlayerTransport(text)).toThrow(sentence);
  });

  test.each([
    [{ edits: { a: { n: 1 } } }, 'what it says under edits is {"a":{"n":1}} and was not there'],
    [{ edits: {}, remember: {} }, undefined],
  ])("compares staged decisions: %j", async (body, wrong) => {
    const player = new PlayerTransport(recording);
    await player.sendMessages(userRequest("story:approval"));
    const second = JSON.parse(lines.find((line) => line.includes('"turn":2')) ?? "").body;
    const { message, messageId } = second;
    const options = { ...(userRequest("") as object), messages: [message], messageId, body };
    const sent = player.sendMessages(options as never);
    if (wrong === undefined) await sent;
    else await expect(sent).rejects.toThrow(wrong);
  });

  test("accepts any value in place of a redacted one", async () => {
    const player = new PlayerTransport(recording.replace("story:approval", "[redacted]"));
    await player.sendMessages(userRequest("anything"));
  });
});
