import { describe, expect, it } from "vitest";
import * as ai6 from "../clients/ai-6/client.ts";
import * as ai7 from "../clients/ai-7/client.ts";
import { difference } from "../harness/equality.ts";
import type { Message, Part } from "../harness/messages.ts";
import type { Chunk } from "../harness/sse-parser.ts";
import { type GoldenTurn, goldenNames, readGolden } from "./goldens.ts";

interface Ai {
  readUIMessageStream(options: object): AsyncIterable<unknown>;
}

const READERS: readonly (readonly [major: 6 | 7, ai: Ai])[] = [
  [6, ai6],
  [7, ai7],
];

/** The message that the AI SDK reads from a response, and the error that ended it. */
async function read(
  ai: Ai,
  { posted, chunks }: GoldenTurn,
): Promise<[Message | undefined, string | undefined]> {
  let message = posted.role === "assistant" ? structuredClone(posted) : undefined;
  let error: string | undefined;
  const stream = new ReadableStream<Chunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(structuredClone(chunk));
      controller.close();
    },
  });
  const states = ai.readUIMessageStream({
    stream,
    ...(message && { message }),
    onError: (cause: Error) => {
      error = cause.message;
    },
  });
  for await (const state of states) message = state as Message;
  return [message, error];
}

/** A part before its decision or client-side output. */
function partBeforeAction(part: Part): Part {
  const { approval, output, ...rest } = part;
  if (part.state === "approval-responded") {
    const { approved: _, reason: __, ...request } = approval ?? { id: "" };
    return { ...rest, state: "approval-requested", approval: request };
  }
  return part.state === "output-available" && part.type.startsWith("tool-locate")
    ? { ...rest, state: "input-available", ...(approval && { approval }) }
    : part;
}

function beforeActions(message: Message | undefined): Message | undefined {
  return message && { ...message, parts: message.parts.map(partBeforeAction) };
}

/** Gated client-side calls are not compared between approval and output. */
function isGatedClientTool(part: Part): boolean {
  return part.type === "tool-locate_gated";
}

describe.each(READERS)("the reader of AI SDK %i", (major, ai) => {
  const names = goldenNames().filter((name) => readGolden(name).major <= major);

  it.each(names)("reads the stored messages from %s", async (name) => {
    const { turns, messages, ...golden } = readGolden(name);
    const origin = { major: golden.major, resumed: false };
    const messagesRead: Message[] = [];
    for (const [index, turn] of turns.entries()) {
      const [message, error] = await read(ai, turn);
      const failed = turn.chunks.find(({ type }) => type === "error");
      expect(error).toBe(failed?.errorText);
      if (turn.posted.role === "user") messagesRead.push(turn.posted);
      else messagesRead.pop();
      if (message !== undefined) messagesRead.push(message);
      // The client posted the message that was read, with its decisions and outputs.
      const next = turns[index + 1]?.posted;
      if (next?.role === "assistant") {
        expect(difference(beforeActions(message), beforeActions(next), origin)).toBeUndefined();
      }
    }
    for (const [index, message] of messagesRead.entries()) {
      expect(difference(message, messages[index], origin, isGatedClientTool)).toBeUndefined();
    }
    expect(messagesRead.map(({ id, role }) => [id, role])).toEqual(
      messages.map(({ id, role }) => [id, role]),
    );
  });

  it("covers every release in every style", () => {
    const folders = new Set(names.map((name) => name.split("/").slice(0, 2).join(" ")));
    expect(folders.size).toBe(major === 7 ? 6 : 2);
  });
});
