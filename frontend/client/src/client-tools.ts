import { type ChatMessage, isTool, lastAnswer, type MessagePart, toolName } from "./messages.ts";

/** What a client-side tool is told about its call. */
export interface ClientToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  /** Aborted when the person stops the turn or leaves the chat. */
  readonly signal: AbortSignal;
}

/** A tool that the page runs; what it returns is the output, what it throws the error. */
export type ClientTool = (input: never, call: ClientToolCall) => unknown;

/** Client-side tools by name. */
export type ClientTools = Readonly<Record<string, ClientTool>>;

/** A call that waits for the page. */
export interface OpenCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** How a call ended. */
export type ClientToolOutcome =
  | { readonly state: "output-available"; readonly output: unknown }
  | { readonly state: "output-error"; readonly errorText: string };

function isOpen(part: MessagePart, isDecided: (approvalId: string) => boolean): boolean {
  const { approval, state } = part;
  if (!isTool(part) || part.providerExecuted === true) return false;
  if (state === "input-available") {
    return approval === undefined || approval.approved === true || approval.isAutomatic === true;
  }
  // A stored message shows a gated call so from the yes to the output.
  return state === "approval-responded" && approval?.approved === true && isDecided(approval.id);
}

/**
 * The calls of the last message that wait for the page.
 *
 * To be asked of messages at rest alone: while a response comes in, the request for an approval of
 * a call may stand behind the call itself. `isDecided` tells whether the server knows of a yes.
 */
export function openCalls(
  messages: readonly ChatMessage[],
  tools: ClientTools,
  isDecided: (approvalId: string) => boolean,
): OpenCall[] {
  return lastAnswer(messages)
    .filter((part) => isOpen(part, isDecided) && Object.hasOwn(tools, toolName(part)))
    .map((part) => ({
      toolCallId: part.toolCallId ?? "",
      toolName: toolName(part),
      input: part.input,
    }));
}

/** Runs each call once. */
export class ClientToolRuns {
  readonly #started = new Set<string>();
  #leaving = new AbortController();

  /**
   * Run what has not been run yet, and tell the outcome of each unless `abort` came first.
   */
  run(
    calls: readonly OpenCall[],
    tools: ClientTools,
    tell: (call: OpenCall, outcome: ClientToolOutcome) => void,
  ): void {
    for (const call of calls) {
      if (this.#started.has(call.toolCallId)) continue;
      this.#started.add(call.toolCallId);
      const { signal } = this.#leaving;
      void this.#outcome(call, tools[call.toolName], signal).then((outcome) => {
        if (!signal.aborted) tell(call, outcome);
      });
    }
  }

  abort(): void {
    this.#leaving.abort();
    this.#leaving = new AbortController();
  }

  async #outcome(
    { toolCallId, toolName, input }: OpenCall,
    tool: ClientTool | undefined,
    signal: AbortSignal,
  ): Promise<ClientToolOutcome> {
    try {
      const output = await tool?.(input as never, { toolCallId, toolName, signal });
      // JSON has no undefined, and an output has to be there.
      return { state: "output-available", output: output ?? null };
    } catch (fault) {
      const errorText = fault instanceof Error && fault.message ? fault.message : "It failed.";
      return { state: "output-error", errorText };
    }
  }
}
