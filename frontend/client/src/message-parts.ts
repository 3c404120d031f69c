/** The `approval` of a tool part, as both majors of the AI SDK represent it. */
export interface Approval {
  readonly id: string;
  readonly approved?: boolean | undefined;
  readonly reason?: string | undefined;
  /** Why the agent requests the approval; AI SDK 7. */
  readonly requestReason?: string | undefined;
  /** The server's description of the tool: name, deadline, JSON schema, permitted decisions. */
  readonly descriptor?: unknown;
  /** Whether the server decided by itself; AI SDK 7. */
  readonly isAutomatic?: boolean | undefined;
}

/**
 * The properties of a message part that this package reads.
 *
 * The `UIMessage` parts of AI SDK 6 and 7 are both assignable to this type; their own types differ.
 */
export interface MessagePart {
  readonly type: string;
  readonly state?: string | undefined;
  readonly toolCallId?: string | undefined;
  readonly toolName?: string | undefined;
  readonly input?: unknown;
  readonly toolMetadata?: unknown;
  readonly preliminary?: boolean | undefined;
  readonly providerExecuted?: boolean | undefined;
  readonly approval?: Approval | undefined;
}

/** The properties of a message that this package reads. */
export interface ChatMessage {
  readonly id: string;
  readonly role: "system" | "user" | "assistant";
  readonly parts: readonly MessagePart[];
}

/** Whether a part is a tool call, of a static or a dynamic tool. */
export function isToolPart(part: MessagePart): boolean {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

/** The name of the tool that a part calls. */
export function toolName(part: MessagePart): string {
  return part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice("tool-".length);
}

/** ADK's request for an approval, whose part carries the decision in style `confirmation`. */
export const CONFIRMATION = "adk_request_confirmation";

/**
 * Whether a part is decided and has no outcome yet. The server announces a decided confirmation
 * again, so that no rule sends its decision twice.
 */
export function isUnsettledDecision(part: MessagePart): boolean {
  if (part.state === "approval-responded") return true;
  const isAnnouncedAgain = part.state === "input-available" && toolName(part) === CONFIRMATION;
  return isAnnouncedAgain && part.approval?.approved !== undefined;
}

/** The parts of the last message if its role is `assistant`, else none. */
export function lastAssistantParts(messages: readonly ChatMessage[]): readonly MessagePart[] {
  const message = messages.at(-1);
  return message?.role === "assistant" ? message.parts : [];
}
