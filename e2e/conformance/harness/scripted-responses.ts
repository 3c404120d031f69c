import type { Chunk } from "./sse-parser.ts";

/** A `fetch` that returns the responses in order, and the last one for all further requests. */
export function scriptedFetch(responses: readonly (readonly Chunk[] | Response)[]): typeof fetch {
  let count = 0;
  return async () => {
    const next = responses[Math.min(count, responses.length - 1)] ?? [];
    count += 1;
    return next instanceof Response ? next.clone() : sseResponse(next);
  };
}

/** A response with the framing of the server: a comment, the chunks, the terminator. */
export function sseResponse(chunks: readonly Chunk[]): Response {
  const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
  return new Response(`: stream-open\n\n${data}data: [DONE]\n\n`, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      "x-vercel-ai-ui-message-stream": "v1",
    },
  });
}

const METADATA = {
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  model: "scripted",
  createdAt: "2026-01-01T00:00:00Z",
};

export const STEP: Chunk = { type: "start-step" };
export const STEP_END: Chunk = { type: "finish-step" };

export function turn(reason: string, ...chunks: readonly (Chunk | readonly Chunk[])[]): Chunk[] {
  return [
    { type: "start", messageId: "m1" },
    ...chunks.flat(),
    { type: "finish", finishReason: reason, messageMetadata: METADATA },
  ];
}

export function failedTurn(...chunks: readonly Chunk[]): Chunk[] {
  return [
    { type: "start", messageId: "m1" },
    ...chunks,
    { type: "error", errorText: "It failed." },
  ];
}

export function call(id: string, toolName: string, more: object = {}): Chunk {
  return { type: "tool-input-available", toolCallId: id, toolName, input: {}, ...more };
}

export function ungatedCall(id: string, toolName: string): Chunk {
  return call(id, toolName, { providerExecuted: true });
}

export function approvalRequest(id: string): Chunk {
  return { type: "tool-approval-request", approvalId: `approval-${id}`, toolCallId: id };
}

export function gatedStep(id: string, toolName: string): Chunk[] {
  return [STEP, call(id, toolName), approvalRequest(id), STEP_END];
}

export function output(id: string): Chunk {
  return { type: "tool-output-available", toolCallId: id, output: { ok: true } };
}

export function progressDone(id: string): Chunk {
  const data = { toolCallId: id, toolName: "any", state: "done" };
  return { type: "data-progress", data, transient: true };
}

export function denial(id: string): Chunk {
  return { type: "tool-output-denied", toolCallId: id };
}

export function text(words: string, id = "t1"): Chunk[] {
  return [
    { type: "text-start", id },
    { type: "text-delta", id, delta: words },
    { type: "text-end", id },
  ];
}
