/** UI messages as both majors hold them; only what the stories read is spelled out. */

export interface Approval {
  readonly id: string;
  readonly approved?: boolean;
  readonly reason?: string;
}

export interface Part {
  readonly type: string;
  readonly text?: string;
  readonly state?: string;
  readonly toolCallId?: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly approval?: Approval;
  readonly preliminary?: boolean;
  readonly providerExecuted?: boolean;
  readonly [key: string]: unknown;
}

export interface Message {
  readonly id: string;
  readonly role: "system" | "user" | "assistant";
  readonly parts: readonly Part[];
  readonly metadata?: unknown;
}

/** One entry of a message's tool calls, named as the agent's author named the tool. */
export interface Call {
  readonly tool: string;
  readonly state: string;
  readonly part: Part;
}

/** The tools that the page runs. */
export const CLIENT_TOOLS: ReadonlySet<string> = new Set(["locate", "locate_gated", "scroll"]);

const CONFIRMATION = "tool-adk_request_confirmation";

export function isTool(part: Part): boolean {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

/** Whether a part is the card of style `confirmation`, which stands for another call. */
export function isConfirmation(part: Part): boolean {
  return part.type === CONFIRMATION;
}

/** Whether the server approved a call by itself, since a person had said so for the chat (A8). */
export function isRemembered(part: Part): boolean {
  return part.approval?.id.startsWith("remembered-") ?? false;
}

/** The tool a part stands for; a confirmation's part names the call that it guards. */
export function toolOf(part: Part): string {
  if (isConfirmation(part)) {
    return (part.input as { originalFunctionCall: { name: string } }).originalFunctionCall.name;
  }
  return part.type === "dynamic-tool" ? String(part.toolName) : part.type.slice("tool-".length);
}

/** The parts after the last `step-start`. */
export function lastStep(message: Message): readonly Part[] {
  const start = message.parts.findLastIndex((part) => part.type === "step-start");
  return message.parts.slice(start + 1);
}

/** The calls of a message in order; cards of style `confirmation` are left out. */
export function calls(message: Message): Call[] {
  return message.parts
    .filter((part) => isTool(part) && !isConfirmation(part))
    .map((part) => ({ tool: toolOf(part), state: part.state ?? "", part }));
}

/** The parts that ask a person, over all messages, in order. */
export function pendingApprovals(messages: readonly Message[]): Part[] {
  return messages
    .flatMap((message) => message.parts)
    .filter((part) => part.state === "approval-requested");
}

/** The texts of a message in order, empty ones left out. */
export function texts(message: Message): string[] {
  return message.parts
    .filter((part) => part.type === "text" && part.text !== "")
    .map((part) => part.text ?? "");
}

export function assistantMessages(messages: readonly Message[]): Message[] {
  return messages.filter((message) => message.role === "assistant");
}
