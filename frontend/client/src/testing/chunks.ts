/** A chunk of a UI message stream, before it is validated. */
export interface Chunk {
  /** The type of the chunk, such as `text-delta`. */
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The chunks of one response. */
export type ResponseChunks = readonly Chunk[];

/** Chunks, some of them in groups. */
export type ChunkGroups = readonly (Chunk | ResponseChunks)[];

/** The begin of a step. */
export const STEP: Chunk = { type: "start-step" };
/** The end of a step. */
export const STEP_END: Chunk = { type: "finish-step" };

const METADATA = {
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  model: "scripted",
  createdAt: "2026-01-01T00:00:00Z",
};

/** A response that ends with `finish`; its message id is `m1` unless it begins with a `start`. */
export function turn(...chunks: ChunkGroups): Chunk[] {
  const all = chunks.flat();
  return [
    ...(all[0]?.type === "start" ? [] : [{ type: "start", messageId: "m1" }]),
    ...all,
    { type: "finish", finishReason: "stop", messageMetadata: METADATA },
  ];
}

/** A response that ends with an open approval or client-side call. */
export function waitingTurn(...chunks: ChunkGroups): Chunk[] {
  return turn(...chunks).map((chunk) =>
    chunk.type === "finish" ? { ...chunk, finishReason: "tool-calls" } : chunk,
  );
}

/** A response that ends with an `error` chunk. */
export function failedTurn(...chunks: ResponseChunks): Chunk[] {
  return [
    { type: "start", messageId: "m1" },
    ...chunks,
    { type: "error", errorText: "It failed." },
  ];
}

/** A step with these chunks. */
export function step(...chunks: ChunkGroups): Chunk[] {
  return [STEP, ...chunks.flat(), STEP_END];
}

/** The complete input of a call; `more` are further properties of the chunk. */
export function call(toolCallId: string, toolName = "pay", more: object = {}): Chunk {
  return { type: "tool-input-available", toolCallId, toolName, input: {}, ...more };
}

/** A server-side call without an approval, marked as `providerExecuted` (T7). */
export function serverCall(toolCallId: string, toolName = "lookup"): Chunk {
  return call(toolCallId, toolName, { providerExecuted: true });
}

/** The approval request of a call; its approval id is `approval-` and the id of the call. */
export function approvalRequest(toolCallId: string): Chunk {
  return { type: "tool-approval-request", approvalId: `approval-${toolCallId}`, toolCallId };
}

/** A call with its approval request. */
export function gatedCall(toolCallId: string, toolName = "pay"): Chunk[] {
  return [call(toolCallId, toolName), approvalRequest(toolCallId)];
}

/** The approval request of the style `confirmation` for a call of `pay`. */
export function confirmation(toolCallId: string): Chunk[] {
  const input = {
    originalFunctionCall: { id: `original-${toolCallId}`, name: "pay", args: { amount: 5 } },
    toolConfirmation: { hint: "Over the limit.", payload: null },
  };
  return [
    call(toolCallId, "adk_request_confirmation", { input }),
    { type: "tool-approval-request", approvalId: toolCallId, toolCallId },
  ];
}

/** The output of a call; `more` are further properties of the chunk. */
export function output(toolCallId: string, more: object = {}): Chunk {
  return { type: "tool-output-available", toolCallId, output: { ok: true }, ...more };
}

/** The error of a call. */
export function outputError(toolCallId: string): Chunk {
  return { type: "tool-output-error", toolCallId, errorText: "It failed." };
}

/** The outcome of a call that was denied. */
export function denial(toolCallId: string): Chunk {
  return { type: "tool-output-denied", toolCallId };
}

/** The transient chunk that announces a held result (D6). */
export function progressDone(toolCallId: string, toolName = "pay"): Chunk {
  const data = { toolCallId, toolName, state: "done" };
  return { type: "data-progress", data, transient: true };
}

/** A block of text. */
export function text(words: string, id = "t1"): Chunk[] {
  return [
    { type: "text-start", id },
    ...(words === "" ? [] : [{ type: "text-delta", id, delta: words }]),
    { type: "text-end", id },
  ];
}

/** A final step with one text. */
export const ANSWER: ResponseChunks = step(text("Done."));
