import type { UIMessage } from "ai";
import type { LiveEvents } from "../bidi/live-events.ts";

/** A message of the user as it was heard. */
interface Heard {
  readonly id: string;
  readonly text: string;
}

function spoken<Message extends UIMessage>({ id, text }: Heard): Message {
  return { id, role: "user", parts: [{ type: "text", text }] } as UIMessage as Message;
}

/** The messages with one that the user has spoken; the same array if it is there already. */
export function withSpoken<Message extends UIMessage>(
  messages: Message[],
  heard: Heard,
): Message[] {
  return messages.some(({ id }) => id === heard.id) ? messages : [...messages, spoken(heard)];
}

/** The messages with a spoken one as it was heard better; the same array if it is not there. */
export function withTranscript<Message extends UIMessage>(
  messages: Message[],
  { messageId, role, text }: LiveEvents["transcript"],
): Message[] {
  const isMeant = (message: Message) => message.id === messageId && message.role === role;
  if (role !== "user" || !messages.some(isMeant)) return messages;
  return messages.map((message) =>
    isMeant(message) ? { ...message, ...spoken<Message>({ id: messageId, text }) } : message,
  );
}
