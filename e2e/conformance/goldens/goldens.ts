import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Message } from "../harness/messages.ts";
import type { Chunk } from "../harness/sse.ts";

const FOLDER = resolve(import.meta.dirname, "../../goldens");

/** A turn of a kept conversation: the message that was posted, and the chunks that came back. */
export interface KeptTurn {
  readonly posted: Message;
  readonly chunks: readonly Chunk[];
}

/** A kept conversation, and the messages that the server stored of it. */
export interface Kept {
  readonly major: 6 | 7;
  readonly turns: readonly KeptTurn[];
  readonly messages: readonly Message[];
}

interface Entry {
  readonly turn: number;
  readonly kind: string;
  readonly body: Chunk & { message: Message; headers: Record<string, string> };
}

/** The names of all goldens: paths in the folder, without their endings. */
export function goldenNames(): string[] {
  return readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".jsonl"))
    .map((path) => path.slice(0, -".jsonl".length))
    .sort();
}

export function readGolden(name: string): Kept {
  const read = (ending: string): string => readFileSync(join(FOLDER, `${name}${ending}`), "utf8");
  const [, ...entries] = read(".jsonl")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry);
  const requests = entries.filter(({ kind }) => kind === "request");
  return {
    major: requests[0]?.body.headers["x-ai-sdk"] === "6" ? 6 : 7,
    turns: requests.map(({ turn, body }) => ({
      posted: body.message,
      chunks: entries
        .filter((entry) => entry.turn === turn && entry.kind === "chunk")
        .map((entry) => entry.body),
    })),
    messages: JSON.parse(read(".messages.json")) as Message[],
  };
}
