import { type ChatMessage, isToolPart, type MessagePart, toolName } from "../message-parts.ts";
import type { Chunk } from "./chunks.ts";
import { turnFaults } from "./turn-chunk-rules.ts";

/** A release policy. */
export type Release = "deferred" | "preview" | "progressive";

/** The turns of one exchange. */
export interface Exchange {
  /** The chunks of each response, from the one to the user's message to the last one. */
  readonly turns: readonly (readonly Chunk[])[];
  /** The release policy of the server, or that of the client. */
  readonly release: Release;
  /** The assistant message after the last turn; T5 is checked with one only. */
  readonly message?: ChatMessage | undefined;
  /** The names of the client-side tools; default: none. */
  readonly clientTools?: ReadonlySet<string>;
  /** Texts that must not reach a client, such as that of an exception (T8, T10). */
  readonly secrets?: readonly string[];
  /** Calls that the server approved because of a grant (A8), which AI SDK 6 cannot represent. */
  readonly granted?: ReadonlySet<string>;
}

const OUTCOME = /^tool-output-/;
const RESULT = /^(tool-output-(available|error|denied)|file|source-(url|document))$/;
const BEFORE_RELEASE =
  /^(start|finish|message-metadata|data-.+|reasoning-(start|delta|end)|(start|finish|reset)-step|tool-input-(start|delta|available)|tool-approval-re(quest|sponse)|error)$/;

type Checked = Exchange & { readonly clientTools: ReadonlySet<string> };

const NONE: ReadonlySet<string> = new Set();

/**
 * The violations of the rules T1 to T10 and of those of the release policy (D1 to D4, D6), each as
 * a sentence that begins with its rule; empty if there is none.
 */
export function ruleFaults(given: Exchange): string[] {
  const exchange: Checked = { ...given, clientTools: given.clientTools ?? NONE };
  const requested = gatedCalls(exchange.turns.flat());
  const gated = new Set([...requested, ...(exchange.granted ?? [])]);
  const gatedClientCalls = new Set(
    [...gated].filter((id) => exchange.clientTools.has(toolNames(exchange).get(id) ?? "")),
  );
  const announcedAgain = new Set([...gatedClientCalls, ...confirmationIds(exchange)]);
  const perTurn = exchange.turns.flatMap((chunks, index) => {
    const requestedBefore = gatedCalls(exchange.turns.slice(0, index).flat());
    const context = { announcedAgain, requestedBefore };
    return turnFaults(chunks, context).map((fault) => `turn ${index + 1}: ${fault}`);
  });
  return [
    ...perTurn,
    ...identityFaults(exchange),
    ...progressFaults(exchange),
    ...emptyStepFaults(exchange),
    ...announcementFaults(exchange, announcedAgain),
    ...executorFaults(exchange, gated),
    ...secretFaults(exchange),
    ...(exchange.release === "progressive"
      ? naturalOrderFaults(exchange)
      : deferredFaults(exchange)),
  ];
}

/** The ids of the parts that carry an approval request in style `confirmation`. */
function confirmationIds({ turns }: Exchange): Set<string> {
  const chunks = turns.flat().filter((chunk) => chunk.toolName === "adk_request_confirmation");
  return new Set(chunks.map((chunk) => String(chunk.toolCallId)));
}

/** The ids of the gated calls: those of approval requests, and those that confirmations refer to. */
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

/** T1: one message id for the whole exchange; T3: one `createdAt`, and usage that never decreases. */
function identityFaults({ turns }: Exchange): string[] {
  const faults: string[] = [];
  const ids = new Set(turns.map((chunks) => chunks[0]?.messageId));
  if (ids.size > 1 || ids.has(undefined)) faults.push(`T1: message ids ${[...ids].join(", ")}`);
  const metadata = turns
    .map((chunks) => chunks.at(-1)?.messageMetadata as Metadata | undefined)
    .filter((each) => each !== undefined);
  const times = new Set(metadata.map(({ createdAt }) => createdAt));
  if (times.size > 1) faults.push(`T3: createdAt ${[...times].join(", ")}`);
  const totals = metadata.map(({ usage }) => usage?.totalTokens ?? 0);
  if (totals.some((total, index) => total < (totals[index - 1] ?? 0))) {
    faults.push(`T3: total tokens ${totals.join(", ")}`);
  }
  return faults;
}

interface Metadata {
  readonly createdAt?: unknown;
  readonly usage?: { readonly totalTokens?: number };
}

/** T4: each later turn changes the state of a part, adds a step, or ends in an error. */
function progressFaults({ turns }: Exchange): string[] {
  const isProgress = (chunk: Chunk): boolean =>
    chunk.type === "start-step" ||
    chunk.type === "error" ||
    chunk.type === "tool-input-available" ||
    chunk.type === "tool-approval-request" ||
    OUTCOME.test(chunk.type);
  return turns.flatMap((chunks, index) =>
    index === 0 || chunks.some(isProgress) ? [] : [`T4: turn ${index + 1} changes nothing`],
  );
}

function isWaiting(chunks: readonly Chunk[]): boolean {
  return chunks.at(-1)?.type === "finish" && chunks.at(-1)?.finishReason === "tool-calls";
}

function lastStep({ parts }: ChatMessage): readonly MessagePart[] {
  return parts.slice(parts.findLastIndex((part) => part.type === "step-start") + 1);
}

/** T5: the last step of a finished message contains no finished server-side call. */
function emptyStepFaults({ turns, message, clientTools }: Checked): string[] {
  const last = turns.at(-1) ?? [];
  if (message === undefined || last.at(-1)?.type !== "finish" || isWaiting(last)) return [];
  return lastStep(message)
    .filter((part) => isToolPart(part) && (part.state ?? "").startsWith("output-"))
    .filter((part) => !clientTools.has(toolName(part)))
    .map((part) => `T5: ${part.type} is ${part.state} in the last step`);
}

/**
 * T9: each call is announced once; a gated client-side call and a decided confirmation are announced
 * again before the steps of a later turn, if they are in the last step: elsewhere a client would
 * double them. No chunk refers to an unknown call.
 */
function announcementFaults({ turns }: Exchange, announcedAgain: ReadonlySet<string>): string[] {
  const announced = new Set<string>();
  let lastStep = new Set<string>();
  const faults: string[] = [];
  for (const chunks of turns) {
    let beforeSteps = true;
    for (const { type, toolCallId: id } of chunks) {
      if (type === "start-step") {
        beforeSteps = false;
        lastStep = new Set();
      }
      if (typeof id !== "string" || type.startsWith("data-")) continue;
      if (type === "tool-input-available") {
        const mayRepeat = beforeSteps && announcedAgain.has(id) && lastStep.has(id);
        if (announced.has(id) && !mayRepeat) faults.push(`T9: ${id} is announced again`);
        announced.add(id);
        lastStep.add(id);
      } else if (!type.startsWith("tool-input-") && !announced.has(id)) {
        faults.push(`T9: ${type} for the unknown call ${id}`);
      }
    }
  }
  return faults;
}

/**
 * T7: `providerExecuted` marks the ungated server-side calls and the confirmations that are announced
 * again, and no others.
 */
function executorFaults({ turns, clientTools }: Checked, gated: ReadonlySet<string>): string[] {
  const ran = new Set(
    turns
      .flat()
      .filter((chunk) => chunk.type === "tool-output-available")
      .map((chunk) => chunk.toolCallId),
  );
  const announced = new Set<unknown>();
  return turns
    .flat()
    .filter((chunk) => chunk.type === "tool-input-available")
    .flatMap((chunk) => {
      const name = String(chunk.toolName);
      const marked = chunk.providerExecuted === true;
      const isConfirmationCall = name === "adk_request_confirmation";
      const isRepeated = isConfirmationCall && announced.has(chunk.toolCallId);
      announced.add(chunk.toolCallId);
      const isGatedOrClientSide =
        !isRepeated &&
        (gated.has(String(chunk.toolCallId)) || clientTools.has(name) || isConfirmationCall);
      // A call that is refused without a request is not executed.
      if (!marked && !ran.has(chunk.toolCallId)) return [];
      if (marked !== isGatedOrClientSide) return [];
      return [`T7: ${name} is ${marked ? "" : "not "}marked as run by the server`];
    });
}

function secretFaults({ turns, secrets = [] }: Exchange): string[] {
  return turns
    .flat()
    .filter((chunk) => secrets.some((secret) => JSON.stringify(chunk).includes(secret)))
    .map((chunk) => `T8, T10: ${chunk.type} contains a secret`);
}

/** The chunks that remain after every `reset-step`. */
function withoutResets(chunks: readonly Chunk[]): Chunk[] {
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

/** The rules D1, D2, D3, D4 and D6, for `deferred` and `preview`. */
function deferredFaults(exchange: Checked): string[] {
  const { turns, release } = exchange;
  const faults: string[] = [];
  turns.forEach((all, index) => {
    const chunks = release === "preview" ? withoutResets(all) : all;
    const name = `turn ${index + 1}`;
    if (release === "deferred" && all.some((chunk) => chunk.type === "reset-step")) {
      faults.push(`D4: ${name} resets a step`);
    }
    if (index < turns.length - 1 || isWaiting(all)) {
      const early = chunks.filter((chunk) => !BEFORE_RELEASE.test(chunk.type));
      faults.push(
        ...early.map((chunk) => `D1: ${name} has ${chunk.type} before the last decision`),
      );
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

/** D2: the step of an approval request contains only gated and client-side calls. */
function mixedStepFaults(chunks: readonly Chunk[]): string[] {
  const step = chunks.slice(chunks.findLastIndex((chunk) => chunk.type === "start-step"));
  if (!step.some((chunk) => chunk.type === "tool-approval-request")) return [];
  return step
    .filter((chunk) => chunk.type === "tool-input-available" && chunk.providerExecuted === true)
    .map((chunk) => `announces ${chunk.toolName} in the step of an approval request`);
}

/** D6: a transient `data-progress` precedes each held result. */
function unannouncedResults(exchange: Checked): string[] {
  const { turns, clientTools } = exchange;
  const chunks = turns.flat();
  const names = toolNames(exchange);
  const announced = new Set(
    chunks
      .filter((chunk) => chunk.type === "data-progress" && chunk.transient === true)
      .map((chunk) => chunk.data as { toolCallId: string; state: string })
      .filter((data) => data.state === "done" || data.state === "failed")
      .map((data) => data.toolCallId),
  );
  return chunks
    .filter((chunk) => chunk.type === "tool-output-available")
    .filter((chunk) => !clientTools.has(names.get(String(chunk.toolCallId)) ?? ""))
    .filter((chunk) => !announced.has(String(chunk.toolCallId)))
    .filter((chunk) => !isConfirmationResult(chunk))
    .map((chunk) => `D6: the result of ${chunk.toolCallId} has no progress before it`);
}

function isConfirmationResult(chunk: Chunk): boolean {
  const output = chunk.output as { confirmed?: boolean } | null;
  return typeof output === "object" && output?.confirmed === true;
}

/**
 * Release `progressive`: an outcome precedes the step after that of its call. Agents whose calls
 * waited beside each other run at once, so another of them may be faster (T2).
 */
function naturalOrderFaults(exchange: Exchange): string[] {
  const { turns } = exchange;
  const confirmations = confirmationIds(exchange);
  const waiting = new Map<string, string | undefined>();
  return turns.flatMap((chunks, index) => {
    const waited = new Map(waiting);
    const waitedAgents = new Set(waited.values());
    let agent: string | undefined;
    const steps: (string | undefined)[] = [];
    const stepOf = new Map<string, number>();
    return chunks.flatMap((chunk) => {
      const id = String(chunk.toolCallId);
      if (chunk.type === "data-agent") agent = (chunk.data as { name: string }).name;
      if (chunk.type === "start-step") steps.push(agent);
      if (chunk.type === "tool-input-available") {
        stepOf.set(id, steps.length);
        waiting.set(id, agentOf(chunk) ?? waiting.get(id));
      }
      if (!OUTCOME.test(chunk.type)) return [];
      waiting.delete(id);
      // A confirmation is closed after the outcome of the call that it refers to.
      if (confirmations.has(id)) return [];
      const own = waited.get(id);
      const isFaster = (other: string | undefined): boolean =>
        own !== undefined && other !== undefined && other !== own && waitedAgents.has(other);
      if (steps.slice(stepOf.get(id) ?? 0).every(isFaster)) return [];
      return [`progressive: turn ${index + 1} has the outcome of an earlier step late`];
    });
  });
}

/** The name of the agent that makes a call, if the metadata has the path of the agent. */
function agentOf(call: Chunk): string | undefined {
  return (call.toolMetadata as { agent?: string } | undefined)?.agent?.split("/").at(-1);
}
