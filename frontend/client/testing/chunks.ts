export interface Chunk {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The chunks of one response. */
export type Response = readonly Chunk[];

export const STEP: Chunk = { type: "start-step" };
export const STEP_END: Chunk = { type: "finish-step" };

const METADATA = { model: "scripted", createdAt: "2026-01-01T00:00:00Z" };

/** A response that ends with `finish`; its message id is `m1` unless it begins with a `start`. */
export function turn(...chunks: readonly (Chunk | readonly Chunk[])[]): Response {
  const all = chunks.flat();
  return [
    ...(all[0]?.type === "start" ? [] : [{ type: "start", messageId: "m1" }]),
    ...all,
    { type: "finish", finishReason: "stop", messageMetadata: METADATA },
  ];
}

/** A response that ends with an open approval or client-side call. */
export function waitingTurn(...chunks: readonly (Chunk | readonly Chunk[])[]): Response {
  return turn(...chunks).map((chunk) =>
    chunk.type === "finish" ? { ...chunk, finishReason: "tool-calls" } : chunk,
  );
}

/** A response that ends with an `error` chunk. */
export function failedTurn(...chunks: readonly Chunk[]): Response {
  return [
    { type: "start", messageId: "m1" },
    ...chunks,
    { type: "error", errorText: "It failed." },
  ];
}

export function step(...chunks: readonly (Chunk | readonly Chunk[])[]): Chunk[] {
  return [STEP, ...chunks.flat(), STEP_END];
}

export function call(toolCallId: string, toolName = "pay", more: object = {}): Chunk {
  return { type: "tool-input-available", toolCallId, toolName, input: {}, ...more };
}

/** A server-side call without an approval, marked as `providerExecuted` (T7). */
export function serverCall(toolCallId: string, toolName = "lookup"): Chunk {
  return call(toolCallId, toolName, { providerExecuted: true });
}

export function approvalRequest(toolCallId: string): Chunk {
  return { type: "tool-approval-request", approvalId: `approval-${toolCallId}`, toolCallId };
}

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

export function output(toolCallId: string, more: object = {}): Chunk {
  return { type: "tool-output-available", toolCallId, output: { ok: true }, ...more };
}

export function outputError(toolCallId: string): Chunk {
  return { type: "tool-output-error", toolCallId, errorText: "It failed." };
}

export function denial(toolCallId: string): Chunk {
  return { type: "tool-output-denied", toolCallId };
}

export function text(words: string, id = "t1"): Chunk[] {
  return [
    { type: "text-start", id },
    ...(words === "" ? [] : [{ type: "text-delta", id, delta: words }]),
    { type: "text-end", id },
  ];
}

/** A final step with one text. */
export const ANSWER: readonly Chunk[] = step(text("Done."));
