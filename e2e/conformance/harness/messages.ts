/** UI messages of both majors, with the properties that the stories read. */

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

/** A tool call of a message, with the name of the tool in the agent. */
export interface Call {
  readonly tool: string;
  readonly state: string;
  readonly part: Part;
}

/** The names of the client-side tools. */
export const CLIENT_TOOLS: ReadonlySet<string> = new Set([
  "adk_request_input",
  "ask_manager",
  "locate",
  "locate_gated",
  "scroll",
]);

const CONFIRMATION = "tool-adk_request_confirmation";

export function isTool(part: Part): boolean {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

/** Whether a part is a confirmation (style `confirmation`), which refers to another call. */
export function isConfirmation(part: Part): boolean {
  return part.type === CONFIRMATION;
}

/** Whether the server approved a call automatically because of a grant (A8). */
export function isGranted(part: Part): boolean {
  return part.approval?.id.startsWith("remembered-") ?? false;
}

/** The tool that a part calls; for a confirmation, the tool of the call that it refers to. */
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

/** The calls of a message in order, without confirmations. */
export function calls(message: Message): Call[] {
  return message.parts
    .filter((part) => isTool(part) && !isConfirmation(part))
    .map((part) => ({ tool: toolOf(part), state: part.state ?? "", part }));
}

/** The parts with a pending approval, over all messages, in order. */
export function pendingApprovals(messages: readonly Message[]): Part[] {
  return messages
    .flatMap((message) => message.parts)
    .filter((part) => part.state === "approval-requested");
}

/** The non-empty texts of a message in order. */
export function texts(message: Message): string[] {
  return message.parts
    .filter((part) => part.type === "text" && part.text !== "")
    .map((part) => part.text ?? "");
}

export function assistantMessages(messages: readonly Message[]): Message[] {
  return messages.filter((message) => message.role === "assistant");
}
