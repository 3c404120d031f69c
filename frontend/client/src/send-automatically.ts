import {
  type ChatMessage,
  CONFIRMATION,
  isToolPart,
  type MessagePart,
  toolName,
} from "./message-parts.ts";
import { isPendingApproval } from "./pending-approvals.ts";

/** A `sendAutomaticallyWhen` rule: returns whether the current messages are to be sent. */
export type SendRule = (state: { readonly messages: readonly ChatMessage[] }) => boolean;

/** The options of `sendAutomaticallyWhen`. */
export interface SendAutomaticallyOptions {
  /**
   * Names of the client-side tools. With names, only the outputs of these tools are awaited and
   * sent. Without names, a call counts as client-side if the server neither marked it as its own
   * (`providerExecuted`) nor requested an approval for it. A client-side tool that requires approval
   * must be named if its output may be added after a reload.
   */
  readonly clientTools?: readonly string[];
}

/** The rule that `sendAutomaticallyWhen` returns; pass it to `Chat` or `useChat` unchanged. */
export interface SafeSendRule {
  (state: { readonly messages: readonly ChatMessage[] }): boolean;
  /**
   * Forget what was sent for a message, or for all messages.
   *
   * Call it after the messages were replaced by those that the server stores: if a decision did not
   * reach the server, the same decision has to be sent again.
   */
  forget(messageId?: string): void;
}

/** What the rule remembers about one message. */
interface MessageMemory {
  /** Keys of the decisions and outputs that were sent. */
  readonly sent: Set<string>;
  /** Ids of the client-side calls that were seen without an output. */
  readonly openCalls: Set<string>;
}

/** The state of one message, collected from its parts. */
interface MessageState {
  isWaiting: boolean;
  readonly decisions: string[];
  readonly outputs: string[];
}

/** Requests of ADK itself that the client fulfils without an approval. */
const ADK_CLIENT_TOOLS: ReadonlySet<string> = new Set([
  "adk_request_input",
  "adk_request_credential",
]);

/** Whether a person, not the server, has decided on the approval of a part. */
function isDecidedByPerson(part: MessagePart): boolean {
  return part.state === "approval-responded" && part.approval?.isAutomatic !== true;
}

function isUnfinished(part: MessagePart): boolean {
  return (
    part.state === "input-streaming" ||
    part.state === "input-available" ||
    part.preliminary === true
  );
}

function isFinished(part: MessagePart): boolean {
  return part.state === "output-available" || part.state === "output-error";
}

/** Whether an unnamed call looks client-side: neither marked by the server nor awaiting approval. */
function looksClientSide(part: MessagePart): boolean {
  if (part.approval === undefined || part.approval.isAutomatic === true) return true;
  // A client-side call that requires approval is announced again after it was approved (T9).
  return part.state === "input-available" && part.approval.approved === true;
}

/** The messages after the last user message: a server that renames an answer leaves copies. */
function currentExchange(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.slice(messages.findLastIndex((message) => message.role === "user") + 1);
}

/** Whether a step ends in unfinished text: the response was cut off, so its outputs are not sent. */
function endsInUnfinishedText(step: readonly MessagePart[]): boolean {
  const call = step.findLastIndex((part) => isToolPart(part) && part.providerExecuted !== true);
  return step.slice(call + 1).some((part) => part.type === "text" && part.state === "streaming");
}

class MessageReader {
  readonly #names: ReadonlySet<string> | undefined;

  constructor(clientTools: readonly string[] | undefined) {
    this.#names = clientTools && new Set(clientTools);
  }

  read(parts: readonly MessagePart[], stepStart: number, memory: MessageMemory): MessageState {
    const state: MessageState = { isWaiting: false, decisions: [], outputs: [] };
    for (const [index, part] of parts.entries()) {
      if (!isToolPart(part)) continue;
      if (isPendingApproval(part)) state.isWaiting = true;
      else if (isDecidedByPerson(part)) {
        state.decisions.push(`${part.approval?.id}:${part.approval?.approved}`);
      } else this.#readOutput(part, index > stepStart, memory, state);
    }
    return state;
  }

  #readOutput(
    part: MessagePart,
    inLastStep: boolean,
    memory: MessageMemory,
    state: MessageState,
  ): void {
    const id = part.toolCallId ?? "";
    const wasOpen = memory.openCalls.has(id);
    if (part.providerExecuted === true) return;
    if (!wasOpen && !this.#isClientSide(part, inLastStep)) return;
    if (isUnfinished(part)) {
      memory.openCalls.add(id);
      state.isWaiting = true;
    } else if (isFinished(part) && (inLastStep || wasOpen)) {
      // In an earlier step, a call that was never seen open has already been answered.
      state.outputs.push(id);
    }
  }

  #isClientSide(part: MessagePart, inLastStep: boolean): boolean {
    const name = toolName(part);
    if (name === CONFIRMATION) return false;
    if (this.#names?.has(name)) return true;
    // In earlier steps a held server-side call may look like a client-side one (AI SDK 6).
    const isCandidate = this.#names === undefined || ADK_CLIENT_TOOLS.has(name);
    return isCandidate && inLastStep && looksClientSide(part);
  }
}

/**
 * A `sendAutomaticallyWhen` rule that combines the AI SDK's rules for approvals and for tool calls.
 *
 * The messages are sent when the last one is an assistant message, none of its approvals and
 * client-side calls is open, and it has a decision or an output that was not sent before. A
 * response that settles nothing is therefore not answered in a loop (S2-R42), server-side calls
 * trigger no request (S2-R47), and several approvals are sent together with the last decision
 * (S2-R34).
 *
 * Approvals are searched for in the whole message, since parallel agents request them in separate
 * steps. The returned rule is stateful: create it once, outside of any component.
 */
export function sendAutomaticallyWhen(options: SendAutomaticallyOptions = {}): SafeSendRule {
  const reader = new MessageReader(options.clientTools);
  const memories = new Map<string, MessageMemory>();

  const rule = ({ messages }: { readonly messages: readonly ChatMessage[] }): boolean => {
    const message = messages.at(-1);
    if (message?.role !== "assistant") return false;
    const memory = memories.get(message.id) ?? { sent: new Set(), openCalls: new Set() };
    memories.set(message.id, memory);
    const { parts } = message;
    const stepStart = parts.findLastIndex((part) => part.type === "step-start");
    const { isWaiting, decisions, outputs } = reader.read(parts, stepStart, memory);
    if (isWaiting) return false;
    const isNew = (key: string) =>
      !currentExchange(messages).some(({ id }) => memories.get(id)?.sent.has(key));
    const isCutOff = endsInUnfinishedText(parts.slice(stepStart + 1));
    if (!decisions.some(isNew) && (isCutOff || !outputs.some(isNew))) return false;
    for (const key of [...decisions, ...outputs]) memory.sent.add(key);
    return true;
  };

  const forget = (messageId?: string): void => {
    if (messageId === undefined) memories.clear();
    else memories.delete(messageId);
  };
  return Object.assign(rule, { forget });
}
