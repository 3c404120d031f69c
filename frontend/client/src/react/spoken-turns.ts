import type { UIMessage } from "ai";
import type { SpokenTurn } from "../audio/voice.ts";
import type { LiveEvents } from "../bidi/live-events.ts";

interface Transcript {
  readonly id: string;
  readonly text: string;
}

function userMessage<Message extends UIMessage>({ id, text }: Transcript): Message {
  return { id, role: "user", parts: [{ type: "text", text }] } as UIMessage as Message;
}

/** The messages with a spoken user message inserted before its answer, or appended. */
function insertSpoken<Message extends UIMessage>(
  messages: Message[],
  transcript: Transcript,
  answerId: string,
): Message[] {
  if (messages.some(({ id }) => id === transcript.id)) return messages;
  const index = messages.findIndex(({ id }) => id === answerId);
  const before = index === -1 ? messages : messages.slice(0, index);
  return [...before, userMessage<Message>(transcript), ...messages.slice(before.length)];
}

/** The messages with the text of a spoken user message replaced; the same array without one. */
function updateSpoken<Message extends UIMessage>(
  messages: Message[],
  { messageId, role, text }: LiveEvents["transcript"],
): Message[] {
  const isTarget = (message: Message) => message.id === messageId && message.role === role;
  if (role !== "user" || !messages.some(isTarget)) return messages;
  return messages.map((message) =>
    isTarget(message) ? { ...message, ...userMessage<Message>({ id: messageId, text }) } : message,
  );
}

/** The operations of the chat that spoken turns use. */
export interface SpokenChat<Message extends UIMessage> {
  setMessages(update: (messages: Message[]) => Message[]): void;
  /** Resolves when no response is streaming. */
  whenIdle(): Promise<void>;
  /** Stream the answer with this id. */
  resume(messageId: string): Promise<void>;
}

/** Adds spoken user messages and their answers to a chat, which did not request them itself. */
export class SpokenTurns<Message extends UIMessage> {
  readonly #chat: SpokenChat<Message>;
  /** The ids of answers whose user message has no transcript yet, by the id of that message. */
  readonly #answersWithoutTranscript = new Map<string, string>();

  constructor(chat: SpokenChat<Message>) {
    this.#chat = chat;
  }

  async addTurn({ messageId, userMessageId: id, text }: SpokenTurn): Promise<void> {
    await this.#chat.whenIdle();
    // Some models transcribe late, or speak without being spoken to.
    if (text === "") this.#answersWithoutTranscript.set(id, messageId);
    else this.#chat.setMessages((messages) => insertSpoken(messages, { id, text }, messageId));
    await this.#chat.resume(messageId);
  }

  addTranscript(transcript: LiveEvents["transcript"]): void {
    const { messageId: id, text } = transcript;
    const answerId = this.#answersWithoutTranscript.get(id);
    this.#answersWithoutTranscript.delete(id);
    this.#chat.setMessages((messages) =>
      answerId === undefined
        ? updateSpoken(messages, transcript)
        : insertSpoken(messages, { id, text }, answerId),
    );
  }
}
