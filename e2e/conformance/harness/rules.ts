import { grammarFaults } from "./grammar.ts";
import { isConfirmation, isTool, lastStep, type Message } from "./messages.ts";
import type { Chunk } from "./sse.ts";

export type Release = "deferred" | "preview" | "progressive";

/** The exception text of the failing tool and of the failing model; it must never come out. */
export const SECRET = "secret-8731";

/** One exchange as it went over the wire. */
export interface Exchange {
  readonly turns: readonly (readonly Chunk[])[];
  readonly release: Release;
  /** The assistant message after the last turn. */
  readonly message: Message | undefined;
  /** Names of the tools that run in the browser. */
  readonly clientTools: ReadonlySet<string>;
  /** Calls that the server approved by itself (A8), of which AI SDK 6 is told nothing. */
  readonly remembered?: ReadonlySet<string>;
}

const OUTCOME = /^tool-output-/;
const RESULT = /^(tool-output-(available|error|denied)|file|source-(url|document))$/;
const BEFORE_RELEASE =
  /^(start|finish|message-metadata|data-.+|reasoning-(start|delta|end)|(start|finish|reset)-step|tool-input-(start|delta|available)|tool-approval-re(quest|sponse)|error)$/;

/** What an exchange breaks of the promises T1 to T10 and of its release's, rule by rule. */
export function ruleFaults(exchange: Exchange): string[] {
  const asked = gatedCalls(exchange.turns.flat());
  const gated = new Set([...asked, ...(exchange.remembered ?? [])]);
  const gatedClientCalls = new Set(
    [...gated].filter((id) => exchange.clientTools.has(toolNames(exchange).get(id) ?? "")),
  );
  const setting = { announcedAgain: gatedClientCalls };
  const perTurn = exchange.turns.flatMap((chunks, index) =>
    grammarFaults(chunks, setting).map((fault) => `turn ${index + 1}: ${fault}`),
  );
  return [
    ...perTurn,
    ...identityFaults(exchange),
    ...progressFaults(exchange),
    ...emptyStepFaults(exchange),
    ...announcementFaults(exchange, gatedClientCalls),
    ...executorFaults(exchange, gated),
    ...secretFaults(exchange),
    ...(exchange.release === "progressive" ? naturalOrderFaults(exchange) : heldFaults(exchange)),
  ];
}

/** Ids of the calls that ask: those of requests, and those behind a confirmation's card. */
function gatedCalls(chunks: readonly Chunk[]): Set<string> {
  const ids = new Set<string>();
  for (const chunk of chunks) {
    if (chunk.type === "tool-approval-request") ids.add(String(chunk.toolCallId));
    if (chunk.type === "tool-input-available" && chunk.toolName === "adk_request_confirmation") {
      const input = chunk.input as { originalFunctionCall?: { id?: string } };
      ids.add(String(input.originalFunctionCall?.id));
    }
  }
  return ids;
}

function toolNames(exchange: Exchange): Map<string, string> {
  const names = exchange.turns
    .flat()
    .filter((chunk) => chunk.type === "tool-input-available")
    .map((chunk): [string, string] => [String(chunk.toolCallId), String(chunk.toolName)]);
  return new Map(names);
}

/** T1: one message id for the whole exchange; T3: one time, and usage that only grows. */
function identityFaults({ turns }: Exchange): string[] {
  const faults: string[] = [];
  const ids = new Set(turns.map((chunks) => chunks[0]?.messageId));
  if (ids.size > 1 || ids.has(undefined)) faults.push(`T1: message ids ${[...ids].join(", ")}`);
  const told = turns
    .map((chunks) => chunks.at(-1)?.messageMetadata as Metadata | undefined)
    .filter((metadata) => metadata !== undefined);
  const times = new Set(told.map(({ createdAt }) => createdAt));
  if (times.size > 1) faults.push(`T3: createdAt ${[...times].join(", ")}`);
  const totals = told.map(({ usage }) => usage?.totalTokens ?? 0);
  if (totals.some((total, index) => total < (totals[index - 1] ?? 0))) {
    faults.push(`T3: total tokens ${totals.join(", ")}`);
  }
  return faults;
}

interface Metadata {
  readonly createdAt?: unknown;
  readonly usage?: { readonly totalTokens?: number };
}

/** T4: a later turn changes the state of a part, adds a step, or ends in an error. */
function progressFaults({ turns }: Exchange): string[] {
  const moves = (chunk: Chunk): boolean =>
    chunk.type === "start-step" ||
    chunk.type === "error" ||
    chunk.type === "tool-input-available" ||
    OUTCOME.test(chunk.type);
  return turns.flatMap((chunks, index) =>
    index === 0 || chunks.some(moves) ? [] : [`T4: turn ${index + 1} changes nothing`],
  );
}

function waits(chunks: readonly Chunk[]): boolean {
  return chunks.at(-1)?.type === "finish" && chunks.at(-1)?.finishReason === "tool-calls";
}

/** T5: the last step of a message that is done holds no finished server tool. */
function emptyStepFaults({ turns, message, clientTools }: Exchange): string[] {
  const last = turns.at(-1) ?? [];
  if (message === undefined || last.at(-1)?.type !== "finish" || waits(last)) return [];
  return lastStep(message)
    .filter((part) => isTool(part) && (part.state ?? "").startsWith("output-"))
    .filter((part) => isConfirmation(part) || !clientTools.has(part.type.slice("tool-".length)))
    .map((part) => `T5: ${part.type} is ${part.state} in the last step`);
}

/**
 * T9: each call is announced once, or, where it may be announced again, before the steps of a later
 * turn; nothing names a call that this message does not hold.
 */
function announcementFaults({ turns }: Exchange, again: ReadonlySet<string>): string[] {
  const announced = new Set<string>();
  const faults: string[] = [];
  for (const chunks of turns) {
    let beforeSteps = true;
    for (const { type, toolCallId: id } of chunks) {
      if (type === "start-step") beforeSteps = false;
      if (typeof id !== "string" || type.startsWith("data-")) continue;
      if (type === "tool-input-available") {
        const mayRepeat = beforeSteps && again.has(id);
        if (announced.has(id) && !mayRepeat) faults.push(`T9: ${id} is announced again`);
        announced.add(id);
      } else if (!type.startsWith("tool-input-") && !announced.has(id)) {
        faults.push(`T9: ${type} for the unknown call ${id}`);
      }
    }
  }
  return faults;
}

/** T7: `providerExecuted` marks the calls that run on the server without asking, and no others. */
function executorFaults({ turns, clientTools }: Exchange, gated: ReadonlySet<string>): string[] {
  const ran = new Set(
    turns
      .flat()
      .filter((chunk) => chunk.type === "tool-output-available")
      .map((chunk) => chunk.toolCallId),
  );
  return turns
    .flat()
    .filter((chunk) => chunk.type === "tool-input-available")
    .flatMap((chunk) => {
      const name = String(chunk.toolName);
      const asksOrIsClient =
        gated.has(String(chunk.toolCallId)) ||
        clientTools.has(name) ||
        name === "adk_request_confirmation";
      const marked = chunk.providerExecuted === true;
      // A call that is refused without asking runs nowhere.
      if (!marked && !ran.has(chunk.toolCallId)) return [];
      if (marked !== asksOrIsClient) return [];
      return [`T7: ${name} is ${marked ? "" : "not "}marked as run by the server`];
    });
}

function secretFaults({ turns }: Exchange): string[] {
  return turns
    .flat()
    .filter((chunk) => JSON.stringify(chunk).includes(SECRET))
    .map((chunk) => `T8, T10: ${chunk.type} tells the secret`);
}

/** The chunks that are still in force after every `reset-step`. */
function standing(chunks: readonly Chunk[]): Chunk[] {
  const kept: Chunk[] = [];
  for (const chunk of chunks) {
    if (chunk.type === "reset-step") {
      kept.length = kept.findLastIndex((earlier) => earlier.type === "start-step") + 1;
    } else {
      kept.push(chunk);
    }
  }
  return kept;
}

/** D1, D2, D3 and D6, for `deferred` and `preview`. */
function heldFaults(exchange: Exchange): string[] {
  const { turns, release } = exchange;
  const faults: string[] = [];
  turns.forEach((all, index) => {
    const chunks = release === "preview" ? standing(all) : all;
    const name = `turn ${index + 1}`;
    if (release === "deferred" && all.some((chunk) => chunk.type === "reset-step")) {
      faults.push(`D4: ${name} resets a step`);
    }
    if (index < turns.length - 1 || waits(all)) {
      const early = chunks.filter((chunk) => !BEFORE_RELEASE.test(chunk.type));
      faults.push(...early.map((chunk) => `D1: ${name} has ${chunk.type} before the last answer`));
      faults.push(...mixedStepFaults(chunks).map((fault) => `D2: ${name} ${fault}`));
    } else {
      const firstResult = chunks.findIndex((chunk) => RESULT.test(chunk.type));
      const lastText = chunks.findLastIndex((chunk) => chunk.type === "text-end");
      if (firstResult !== -1 && lastText > firstResult) {
        faults.push(`D3: ${name} has text after a result`);
      }
    }
  });
  return [...faults, ...unannouncedResults(exchange)];
}

/** D2: the step of a request holds only calls that ask and client-side ones. */
function mixedStepFaults(chunks: readonly Chunk[]): string[] {
  const step = chunks.slice(chunks.findLastIndex((chunk) => chunk.type === "start-step"));
  if (!step.some((chunk) => chunk.type === "tool-approval-request")) return [];
  return step
    .filter((chunk) => chunk.type === "tool-input-available" && chunk.providerExecuted === true)
    .map((chunk) => `announces ${chunk.toolName} in the step of a request`);
}

/** D6: a held result has been announced as done by a transient `data-progress`. */
function unannouncedResults(exchange: Exchange): string[] {
  const { turns, clientTools } = exchange;
  const chunks = turns.flat();
  const names = toolNames(exchange);
  const told = new Set(
    chunks
      .filter((chunk) => chunk.type === "data-progress" && chunk.transient === true)
      .map((chunk) => chunk.data as { toolCallId: string; state: string })
      .filter((data) => data.state === "done" || data.state === "failed")
      .map((data) => data.toolCallId),
  );
  return chunks
    .filter((chunk) => chunk.type === "tool-output-available")
    .filter((chunk) => !clientTools.has(names.get(String(chunk.toolCallId)) ?? ""))
    .filter((chunk) => !told.has(String(chunk.toolCallId)))
    .filter((chunk) => !isClosing(chunk))
    .map((chunk) => `D6: the result of ${chunk.toolCallId} comes without word of its end`);
}

function isClosing(chunk: Chunk): boolean {
  const output = chunk.output as { confirmed?: boolean } | null;
  return typeof output === "object" && output?.confirmed === true;
}

/** Release `progressive`: an outcome comes before the step that follows its call's. */
function naturalOrderFaults({ turns }: Exchange): string[] {
  const cards = new Set(
    turns
      .flat()
      .filter((chunk) => chunk.toolName === "adk_request_confirmation")
      .map((chunk) => chunk.toolCallId),
  );
  return turns.flatMap((chunks, index) => {
    let stepsHere = 0;
    const stepOf = new Map<unknown, number>();
    return chunks.flatMap((chunk) => {
      if (chunk.type === "start-step") stepsHere += 1;
      if (chunk.type === "tool-input-available") stepOf.set(chunk.toolCallId, stepsHere);
      // A card of style `confirmation` is closed after the outcome of the call behind it.
      if (!OUTCOME.test(chunk.type) || cards.has(chunk.toolCallId)) return [];
      if (stepsHere === (stepOf.get(chunk.toolCallId) ?? 0)) return [];
      return [`progressive: turn ${index + 1} has the outcome of an earlier step late`];
    });
  });
}
