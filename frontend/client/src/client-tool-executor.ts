import {
  type ChatMessage,
  isToolPart,
  lastAssistantParts,
  type MessagePart,
  toolName,
} from "./message-parts.ts";

/** The second argument of a client-side tool. */
export interface ClientToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  /** Aborted when the user stops the turn or leaves the chat. */
  readonly signal: AbortSignal;
}

/** A tool that the page executes: its return value is the output, an exception the error. */
export type ClientTool = (input: never, call: ClientToolCall) => unknown;

/** Client-side tools by name. */
export type ClientTools = Readonly<Record<string, ClientTool>>;

/** A client-side call without an output. */
export interface OpenCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** The outcome of a client-side call, as `addToolOutput` takes it. */
export type ClientToolOutcome =
  | { readonly state: "output-available"; readonly output: unknown }
  | { readonly state: "output-error"; readonly errorText: string };

function isOpenCall(part: MessagePart, isAccepted: (approvalId: string) => boolean): boolean {
  const { approval, state } = part;
  if (!isToolPart(part) || part.providerExecuted === true) return false;
  if (state === "input-available") {
    return approval === undefined || approval.approved === true || approval.isAutomatic === true;
  }
  // A stored message has this state for an approved call until its output is added.
  return state === "approval-responded" && approval?.approved === true && isAccepted(approval.id);
}

/**
 * The client-side calls of the last message that have no output.
 *
 * Call it only between responses: in a stream, the approval request for a call may follow the call
 * itself. `isAccepted` returns whether the server has accepted the decision on an approval.
 */
export function openCalls(
  messages: readonly ChatMessage[],
  tools: ClientTools,
  isAccepted: (approvalId: string) => boolean,
): OpenCall[] {
  return lastAssistantParts(messages)
    .filter((part) => isOpenCall(part, isAccepted) && Object.hasOwn(tools, toolName(part)))
    .map((part) => ({
      toolCallId: part.toolCallId ?? "",
      toolName: toolName(part),
      input: part.input,
    }));
}

/** Executes client-side calls, each one once. */
export class ClientToolExecutor {
  readonly #started = new Set<string>();
  #abortController = new AbortController();

  /** Execute the calls that were not started before; `onOutcome` is not called after `abort`. */
  execute(
    calls: readonly OpenCall[],
    tools: ClientTools,
    onOutcome: (call: OpenCall, outcome: ClientToolOutcome) => void,
  ): void {
    for (const call of calls) {
      if (this.#started.has(call.toolCallId)) continue;
      this.#started.add(call.toolCallId);
      const { signal } = this.#abortController;
      void this.#outcome(call, tools[call.toolName], signal).then((outcome) => {
        if (!signal.aborted) onOutcome(call, outcome);
      });
    }
  }

  /** Abort the running calls and discard their outcomes. */
  abort(): void {
    this.#abortController.abort();
    this.#abortController = new AbortController();
  }

  async #outcome(
    { toolCallId, toolName, input }: OpenCall,
    tool: ClientTool | undefined,
    signal: AbortSignal,
  ): Promise<ClientToolOutcome> {
    try {
      const output = await tool?.(input as never, { toolCallId, toolName, signal });
      // JSON has no undefined, and the output is required.
      return { state: "output-available", output: output ?? null };
    } catch (error) {
      const errorText = error instanceof Error && error.message ? error.message : "It failed.";
      return { state: "output-error", errorText };
    }
  }
}
