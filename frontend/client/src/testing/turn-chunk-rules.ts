import type { Chunk } from "./chunks.ts";

const REASONS = new Set(["stop", "length", "content-filter", "tool-calls", "error", "other"]);
const INSIDE_STEPS = /^(text|reasoning|tool-input)-|^tool-approval-request$/;

/** The context of a turn in its exchange. */
export interface TurnContext {
  /**
   * Parts that the turn of their decision may announce again before its steps: those of gated
   * client-side calls, and confirmations.
   */
  readonly announcedAgain: ReadonlySet<string>;
  /** Calls whose approval an earlier turn has requested; another question needs no step. */
  readonly requestedBefore: ReadonlySet<string>;
}

/** The violations of T1, T2, T3 and T10 within one turn. */
export function turnFaults(chunks: readonly Chunk[], context: TurnContext): string[] {
  const faults = [...edgeFaults(chunks), ...stepFaults(chunks, context)];
  const last = chunks.at(-1);
  if (last?.type === "finish") faults.push(...finishFaults(last));
  if (last?.type === "error" && (typeof last.errorText !== "string" || last.errorText === "")) {
    faults.push("T10: the error has no text");
  }
  return faults;
}

function edgeFaults(chunks: readonly Chunk[]): string[] {
  const faults: string[] = [];
  const count = (type: string): number => chunks.filter((chunk) => chunk.type === type).length;
  if (chunks[0]?.type !== "start") faults.push(`T1: begins with ${chunks[0]?.type}`);
  if (count("start") !== 1) faults.push(`T1: ${count("start")} starts`);
  if (count("finish") + count("error") !== 1) {
    faults.push(`T3: ${count("finish")} finishes and ${count("error")} errors`);
  }
  const last = chunks.at(-1)?.type ?? "nothing";
  if (last !== "finish" && last !== "error") faults.push(`T3: ends with ${last}`);
  return faults;
}

function stepFaults(chunks: readonly Chunk[], context: TurnContext): string[] {
  const faults: string[] = [];
  const open = new Set<string>();
  let inStep = false;
  let hasStep = false;
  for (const chunk of chunks) {
    const { type } = chunk;
    if (type === "start-step") {
      if (inStep) faults.push("T2: a step inside a step");
      inStep = true;
      hasStep = true;
    } else if (type === "finish-step") {
      if (!inStep) faults.push("T2: a step ends that has not begun");
      if (open.size > 0) faults.push(`T2: ${[...open].join(", ")} open at the end of the step`);
      inStep = false;
    } else if (type === "reset-step") {
      open.clear();
    } else if (INSIDE_STEPS.test(type) && !inStep) {
      const isAnnouncedAgain = !hasStep && context.announcedAgain.has(String(chunk.toolCallId));
      const isLaterQuestion =
        type === "tool-approval-request" && context.requestedBefore.has(String(chunk.toolCallId));
      if (!isAnnouncedAgain && !isLaterQuestion) faults.push(`T2: ${type} outside a step`);
    } else if (type === "finish" && inStep) {
      faults.push("T2: finish inside a step");
    }
    const block = /^(text|reasoning)-(start|end)$/.exec(type);
    if (block?.[2] === "start") open.add(`${block[1]} ${chunk.id}`);
    if (block?.[2] === "end") open.delete(`${block[1]} ${chunk.id}`);
  }
  return faults;
}

function finishFaults(finish: Chunk): string[] {
  const faults: string[] = [];
  if (!REASONS.has(String(finish.finishReason))) {
    faults.push(`T3: finishReason ${JSON.stringify(finish.finishReason)}`);
  }
  const metadata = (finish.messageMetadata ?? {}) as Record<string, unknown>;
  for (const key of ["usage", "model", "createdAt"]) {
    if (metadata[key] === undefined) faults.push(`T3: finish without ${key}`);
  }
  const usage = (metadata.usage ?? {}) as Record<string, unknown>;
  for (const key of ["inputTokens", "outputTokens", "totalTokens"]) {
    if (typeof usage[key] !== "number") faults.push(`T3: usage without ${key}`);
  }
  return faults;
}
