/** The `approval` of a tool part, as both majors of the AI SDK hold it. */
export interface Approval {
  readonly id: string;
  readonly approved?: boolean | undefined;
  readonly reason?: string | undefined;
  /** Why the agent asks, as it puts it; AI SDK 7. */
  readonly requestReason?: string | undefined;
  /** What the server tells about the tool: its name, deadline, schema, what may be done. */
  readonly descriptor?: unknown;
  /** The server has decided by itself; AI SDK 7. */
  readonly isAutomatic?: boolean | undefined;
}

/**
 * What the rules read of a part of a message.
 *
 * The `UIMessage` of AI SDK 6 and of 7 both fit this shape; their own types differ.
 */
export interface MessagePart {
  readonly type: string;
  readonly state?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly toolName?: string | undefined;
  readonly input?: unknown;
  readonly preliminary?: boolean | undefined;
  readonly providerExecuted?: boolean | undefined;
  readonly approval?: Approval | undefined;
}

/** What the rules read of a message. */
export interface ChatMessage {
  readonly id: string;
  readonly role: "system" | "user" | "assistant";
  readonly parts: readonly MessagePart[];
}

/** A `sendAutomaticallyWhen` rule: whether the messages, as they are now, are to be sent. */
export type SendRule = (state: { readonly messages: readonly ChatMessage[] }) => boolean;

/** Whether a part is a tool call, of a declared tool or of one named while the agent runs. */
export function isTool(part: MessagePart): boolean {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

/** The name of the tool that a part calls. */
export function toolName(part: MessagePart): string {
  return part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice("tool-".length);
}

/** Whether a part waits for a person; one that the server decides by itself does not. */
export function asks(part: MessagePart): boolean {
  return isTool(part) && part.state === "approval-requested" && part.approval?.isAutomatic !== true;
}

/** The parts of the last message if it is the assistant's, else none. */
export function lastAnswer(messages: readonly ChatMessage[]): readonly MessagePart[] {
  const message = messages.at(-1);
  return message?.role === "assistant" ? message.parts : [];
}
