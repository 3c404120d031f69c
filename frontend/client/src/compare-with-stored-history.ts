import type { StoredChat } from "./chat-api.ts";
import { isToolPart, type MessagePart } from "./message-parts.ts";

interface Message {
  readonly id: string;
  readonly parts: readonly object[];
}

/** What a stored part has in common with the same part of a stream. */
function comparable(
  part: MessagePart & { readonly text?: string; readonly url?: string },
): unknown {
  const { type, text, url } = part;
  if (!isToolPart(part)) return [type, text, url];
  return [type, part.toolCallId, part.state, part.approval?.id, part.approval?.approved];
}

function comparableMessage({ id, parts }: Message): unknown {
  const compared = (parts as readonly MessagePart[]).filter(
    ({ type }) => type !== "step-start" && !type.startsWith("data-"),
  );
  return [id, compared.map(comparable)];
}

/** Whether the messages of a chat are those that the server stores. */
export function isSameHistory(messages: readonly Message[], stored: readonly Message[]): boolean {
  return (
    messages.length === stored.length &&
    JSON.stringify(messages.map(comparableMessage)) ===
      JSON.stringify(stored.map(comparableMessage))
  );
}

/** The messages with the metadata of the stored ones, which are equal but for it. */
export function withStoredMetadata<Message extends { metadata?: unknown }>(
  messages: Message[],
  stored: readonly Message[],
): Message[] {
  const isSame = ({ metadata }: Message, index: number) =>
    JSON.stringify(metadata) === JSON.stringify(stored[index]?.metadata);
  if (messages.every(isSame)) return messages;
  return messages.map((message, index) =>
    isSame(message, index) ? message : { ...message, metadata: stored[index]?.metadata },
  );
}

/**
 * The stored messages with the outputs of this page that the server does not have yet: an output is
 * sent with the last decision of its step.
 */
export function withUnsentOutputs<Message extends { readonly parts: readonly object[] }>(
  stored: Message[],
  messages: readonly Message[],
): Message[] {
  const parts = messages.flatMap((message) => message.parts) as readonly MessagePart[];
  const outputs = new Map(
    parts
      .filter(({ state, providerExecuted }) => state?.startsWith("output-") && !providerExecuted)
      .map((part) => [part.toolCallId, part]),
  );
  const complete = (part: object) => {
    const { state, toolCallId } = part as MessagePart;
    return (state === "input-available" && outputs.get(toolCallId)) || part;
  };
  return stored.map((message) => ({ ...message, parts: message.parts.map(complete) }));
}

function textsOf({ parts }: Message): string {
  return JSON.stringify((parts as { text?: string }[]).map(({ text }) => text ?? ""));
}

/** Whether there is a stored version of a user message, with the same text. */
export function hasSameText(version: Message | undefined, message: Message): boolean {
  return version !== undefined && textsOf(version) === textsOf(message);
}

/** The stored version of a message. */
export function storedVersion<Stored extends Message>(
  message: Stored | undefined,
  stored: StoredChat<Stored> | undefined,
): Stored | undefined {
  return stored?.messages.find(({ id }) => id === message?.id);
}
