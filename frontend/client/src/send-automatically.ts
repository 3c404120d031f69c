import { asks, type ChatMessage, isTool, type MessagePart, toolName } from "./messages.ts";

export interface SendAutomaticallyOptions {
  /**
   * Names of the tools that the page runs itself. With names, no other tool's output is waited for
   * or sent. Without, a call counts as the page's if the server neither marked it as its own
   * (`providerExecuted`) nor asked for an approval of it. A page tool that asks first has to be
   * named if its output may come after a reload.
   */
  readonly clientTools?: readonly string[];
}

/** The rule that `sendAutomaticallyWhen` makes; give it to `Chat` or `useChat` as it is. */
export interface SafeSendRule {
  (state: { readonly messages: readonly ChatMessage[] }): boolean;
  /**
   * Forget what was sent for a message, or for all of them.
   *
   * Call it after messages were replaced by what the server holds: if an answer never arrived, the
   * same answer given again is to be sent.
   */
  forget(messageId?: string): void;
}

/** What the rule knows of one message beyond its parts. */
interface Memory {
  /** The answers and outputs that were sent. */
  readonly sent: Set<string>;
  /** The calls that were seen to wait for the page. */
  readonly opened: Set<string>;
}

/** What the parts of one message come to. */
interface Reading {
  waits: boolean;
  readonly answers: string[];
  readonly outputs: string[];
}

/** The page runs these for ADK itself; they are approvals only where they carry one. */
const PAGE_BY_NATURE: ReadonlySet<string> = new Set([
  "adk_request_input",
  "adk_request_credential",
]);

/** Whether the decision over a part was made by a person, if there was one to make at all. */
function isAnsweredByPerson(part: MessagePart): boolean {
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

/** Whether a call looks like the page's: the server marks what it runs itself and asks for the rest. */
function looksLikeThePages(part: MessagePart): boolean {
  if (part.approval === undefined || part.approval.isAutomatic === true) return true;
  // A page tool that asked first is announced again once a person has said yes.
  return part.state === "input-available" && part.approval.approved === true;
}

/** The messages behind the last one of the user: a server that renames an answer leaves copies. */
function exchange(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.slice(messages.findLastIndex((message) => message.role === "user") + 1);
}

/** A text that never ended: the response was cut off, and what the page did was not waited for. */
function endsInOpenText(step: readonly MessagePart[]): boolean {
  const call = step.findLastIndex((part) => isTool(part) && part.providerExecuted !== true);
  return step.slice(call + 1).some((part) => part.type === "text" && part.state === "streaming");
}

class Reader {
  readonly #names: ReadonlySet<string> | undefined;

  constructor(clientTools: readonly string[] | undefined) {
    this.#names = clientTools && new Set(clientTools);
  }

  read(parts: readonly MessagePart[], stepStart: number, memory: Memory): Reading {
    const reading: Reading = { waits: false, answers: [], outputs: [] };
    for (const [index, part] of parts.entries()) {
      if (!isTool(part)) continue;
      if (asks(part)) reading.waits = true;
      else if (isAnsweredByPerson(part)) {
        reading.answers.push(`${part.approval?.id}:${part.approval?.approved}`);
      } else this.#readOutput(part, index > stepStart, memory, reading);
    }
    return reading;
  }

  #readOutput(part: MessagePart, inLastStep: boolean, memory: Memory, reading: Reading): void {
    const id = part.toolCallId ?? "";
    const wasOpen = memory.opened.has(id);
    if (part.providerExecuted === true || !(wasOpen || this.#isThePages(part, inLastStep))) return;
    if (isUnfinished(part)) {
      memory.opened.add(id);
      reading.waits = true;
    } else if (isFinished(part) && (inLastStep || wasOpen)) {
      // Finished in an earlier step and never seen open: its answer stands behind it already.
      reading.outputs.push(id);
    }
  }

  #isThePages(part: MessagePart, inLastStep: boolean): boolean {
    const name = toolName(part);
    if (this.#names?.has(name)) return true;
    // In earlier steps a call that the server holds may look like one of the page's (AI SDK 6).
    const isKnown = this.#names === undefined || PAGE_BY_NATURE.has(name);
    return isKnown && inLastStep && looksLikeThePages(part);
  }
}

/**
 * The AI SDK's own rules for approvals and for tool calls, made safe.
 *
 * The messages are sent when the last one is the assistant's, nothing in it waits for a person or
 * for the page, and there is an answer or an output that was not sent before. So a response that
 * settles nothing is not answered again and again (S2-R42), calls that the server runs set nothing
 * off (S2-R47), and of several approvals the last answer sends them all (S2-R34).
 *
 * Approvals are looked for in the whole message, since agents that run at once ask in steps of
 * their own. The memory belongs to the rule that is returned: make one outside of any component.
 */
export function sendAutomaticallyWhen(options: SendAutomaticallyOptions = {}): SafeSendRule {
  const reader = new Reader(options.clientTools);
  const memories = new Map<string, Memory>();

  const rule = ({ messages }: { readonly messages: readonly ChatMessage[] }): boolean => {
    const message = messages.at(-1);
    if (message?.role !== "assistant") return false;
    const memory = memories.get(message.id) ?? { sent: new Set(), opened: new Set() };
    memories.set(message.id, memory);
    const { parts } = message;
    const stepStart = parts.findLastIndex((part) => part.type === "step-start");
    const { waits, answers, outputs } = reader.read(parts, stepStart, memory);
    if (waits) return false;
    const isNew = (item: string) =>
      !exchange(messages).some(({ id }) => memories.get(id)?.sent.has(item));
    const isCutOff = endsInOpenText(parts.slice(stepStart + 1));
    if (!answers.some(isNew) && (isCutOff || !outputs.some(isNew))) return false;
    for (const item of [...answers, ...outputs]) memory.sent.add(item);
    return true;
  };

  const forget = (messageId?: string): void => {
    if (messageId === undefined) memories.clear();
    else memories.delete(messageId);
  };
  return Object.assign(rule, { forget });
}
