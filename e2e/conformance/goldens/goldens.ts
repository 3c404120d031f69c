import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Message } from "../harness/messages.ts";
import type { Chunk } from "../harness/sse-parser.ts";

const FOLDER = resolve(import.meta.dirname, "../../goldens");

/** A turn of a golden: the posted message and the chunks of the response. */
export interface GoldenTurn {
  readonly posted: Message;
  readonly chunks: readonly Chunk[];
}

/** A recorded conversation with its stored messages. */
export interface RecordedConversation {
  readonly major: 6 | 7;
  readonly turns: readonly GoldenTurn[];
  readonly messages: readonly Message[];
}

interface Entry {
  readonly turn: number;
  readonly kind: string;
  readonly body: Chunk & { message: Message; headers: Record<string, string> };
}

/** The names of all goldens: their paths without extension. */
export function goldenNames(): string[] {
  return readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".jsonl"))
    .map((path) => path.slice(0, -".jsonl".length))
    .sort();
}

export function readGolden(name: string): RecordedConversation {
  const read = (extension: string): string =>
    readFileSync(join(FOLDER, `${name}${extension}`), "utf8");
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
