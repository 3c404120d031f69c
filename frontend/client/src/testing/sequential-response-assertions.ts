/** A chunk of a UI message stream, of either major of the AI SDK. */
export interface ResponseChunk {
  readonly type: string;
}

/** A response does not have the form that the S2 document requires. */
export class S2Violation extends Error {
  override readonly name = "S2Violation";
  /** The id of the requirement, such as `S2-R04`. */
  readonly requirement: string;

  constructor(requirement: string, message: string) {
    super(`${requirement}: ${message}`);
    this.requirement = requirement;
  }
}

function isText(type: string): boolean {
  return type.startsWith("text-");
}

function isOutcome(type: string): boolean {
  return type.startsWith("tool-output-");
}

/** The requirement that a chunk of an intermediate response violates. */
function violationOf(type: string): [requirement: string, message: string] | undefined {
  if (isText(type)) return ["S2-R04", "an intermediate response contains text"];
  if (isOutcome(type)) return ["S2-R06", "an intermediate response contains a tool output"];
  if (type === "file" || type.startsWith("source-")) {
    return ["S2-R48", "an intermediate response contains a file or a source"];
  }
  return undefined;
}

function assertEnds(chunks: readonly ResponseChunk[]): void {
  const ends = chunks.filter(({ type }) => type === "finish");
  if (ends.length !== 1 || chunks.at(-1)?.type !== "finish") {
    throw new S2Violation("S2-R25", "a response ends with `finish`, once");
  }
}

/**
 * Assert that a response which is not the last one of its exchange requests approval and shows
 * nothing else: the input of each call before its request, no text and no output (S2-R03 to R06).
 *
 * Throws an `S2Violation`.
 */
export function assertIntermediateResponse(chunks: readonly ResponseChunk[]): void {
  for (const { type } of chunks) {
    const violation = violationOf(type);
    if (violation !== undefined) throw new S2Violation(...violation);
  }
  const request = chunks.findIndex(({ type }) => type === "tool-approval-request");
  const input = chunks.findIndex(({ type }) => type === "tool-input-available");
  if (request === -1) throw new S2Violation("S2-R05", "an intermediate response requests approval");
  if (input === -1 || input > request) {
    throw new S2Violation("S2-R03", "a tool input precedes the approval request");
  }
  assertEnds(chunks);
}

/**
 * Assert that the last response of an exchange releases what was held: all text, then the outcomes
 * of the calls, and no further request (S2-R07, R20).
 *
 * Throws an `S2Violation`.
 */
export function assertFinalResponse(chunks: readonly ResponseChunk[]): void {
  if (chunks.some(({ type }) => type === "tool-approval-request")) {
    throw new S2Violation("S2-R20", "the last response requests another approval");
  }
  const outcome = chunks.findIndex(({ type }) => isOutcome(type));
  if (outcome === -1) throw new S2Violation("S2-R07", "the last response contains no tool output");
  if (chunks.slice(outcome).some(({ type }) => isText(type))) {
    throw new S2Violation("S2-R07", "text precedes the tool outputs");
  }
  assertEnds(chunks);
}
