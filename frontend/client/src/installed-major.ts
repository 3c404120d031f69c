import { asSchema, uiMessageChunkSchema } from "ai";

/** The major version of the AI SDK; it determines the chunk types that the server may send. */
export type Major = 6 | 7;

/** The chunks of a server that only AI SDK 7 accepts. */
const CHUNKS_OF_7 = [
  { type: "reset-step" },
  { type: "tool-approval-response", approvalId: "", approved: true },
];

async function detectMajor(): Promise<Major> {
  // The version is not exported; what matters is the chunks that are accepted.
  const schema = asSchema(uiMessageChunkSchema);
  const results = await Promise.all(CHUNKS_OF_7.map((chunk) => schema.validate?.(chunk)));
  return results.every((result) => result?.success === true) ? 7 : 6;
}

let detected: Promise<Major> | undefined;

/** The major version of the installed `ai`, by the chunks that it accepts. */
export function installedMajor(): Promise<Major> {
  detected ??= detectMajor();
  return detected;
}
