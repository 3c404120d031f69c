import { describe, expect, it } from "vitest";
import * as ai6 from "../clients/ai-6/client.ts";
import * as ai7 from "../clients/ai-7/client.ts";
import { difference } from "../harness/equality.ts";
import type { Message, Part } from "../harness/messages.ts";
import type { Chunk } from "../harness/sse.ts";
import { goldenNames, type KeptTurn, readGolden } from "./goldens.ts";

interface Ai {
  readUIMessageStream(given: object): AsyncIterable<unknown>;
}

const READERS: readonly (readonly [major: 6 | 7, ai: Ai])[] = [
  [6, ai6],
  [7, ai7],
];

/** What the AI SDK's own reader makes of a response, and the error that ended it. */
async function read(
  ai: Ai,
  { posted, chunks }: KeptTurn,
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
    onError: (fault: Error) => {
      error = fault.message;
    },
  });
  for await (const state of states) message = state as Message;
  return [message, error];
}

/** A message as it was before the person or the browser acted on it. */
function untouched(part: Part): Part {
  const { approval, output, ...rest } = part;
  if (part.state === "approval-responded") {
    const { approved: _, reason: __, ...asked } = approval ?? { id: "" };
    return { ...rest, state: "approval-requested", approval: asked };
  }
  return part.state === "output-available" && part.type.startsWith("tool-locate")
    ? { ...rest, state: "input-available", ...(approval && { approval }) }
    : part;
}

function asked(message: Message | undefined): Message | undefined {
  return message && { ...message, parts: message.parts.map(untouched) };
}

/** Gated client-side calls, which are not compared between approval and output. */
function isGatedOfTheBrowser(part: Part): boolean {
  return part.type === "tool-locate_gated";
}

describe.each(READERS)("the reader of AI SDK %i", (major, ai) => {
  const names = goldenNames().filter((name) => readGolden(name).major <= major);

  it.each(names)("makes of %s the messages that the server keeps", async (name) => {
    const { turns, messages, ...kept } = readGolden(name);
    const origin = { major: kept.major, resumed: false };
    const held: Message[] = [];
    for (const [index, turn] of turns.entries()) {
      const [message, error] = await read(ai, turn);
      const failed = turn.chunks.find(({ type }) => type === "error");
      expect(error).toBe(failed?.errorText);
      if (turn.posted.role === "user") held.push(turn.posted);
      else held.pop();
      if (message !== undefined) held.push(message);
      // The client has posted just what this reader holds, and what was answered meanwhile.
      const next = turns[index + 1]?.posted;
      if (next?.role === "assistant") {
        expect(difference(asked(message), asked(next), origin)).toBeUndefined();
      }
    }
    for (const [index, message] of held.entries()) {
      expect(difference(message, messages[index], origin, isGatedOfTheBrowser)).toBeUndefined();
    }
    expect(held.map(({ id, role }) => [id, role])).toEqual(
      messages.map(({ id, role }) => [id, role]),
    );
  });

  it("reads every release in every style", () => {
    const folders = new Set(names.map((name) => name.split("/").slice(0, 2).join(" ")));
    expect(folders.size).toBe(major === 7 ? 6 : 2);
  });
});
