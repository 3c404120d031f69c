import type { UIMessage } from "ai";
import type { SpokenTurn } from "../audio/voice.ts";
import type { LiveEvents } from "../bidi/live-events.ts";

/** A message of the user as it was heard. */
interface Heard {
  readonly id: string;
  readonly text: string;
}

function spoken<Message extends UIMessage>({ id, text }: Heard): Message {
  return { id, role: "user", parts: [{ type: "text", text }] } as UIMessage as Message;
}

/** The messages with one that the user has spoken, before its answer if that is there. */
function withSpoken<Message extends UIMessage>(
  messages: Message[],
  heard: Heard,
  answerId: string,
): Message[] {
  if (messages.some(({ id }) => id === heard.id)) return messages;
  const at = messages.findIndex(({ id }) => id === answerId);
  const before = at === -1 ? messages : messages.slice(0, at);
  return [...before, spoken<Message>(heard), ...messages.slice(before.length)];
}

/** The messages with a spoken one as it was heard better; the same array if it is not there. */
function withTranscript<Message extends UIMessage>(
  messages: Message[],
  { messageId, role, text }: LiveEvents["transcript"],
): Message[] {
  const isMeant = (message: Message) => message.id === messageId && message.role === role;
  if (role !== "user" || !messages.some(isMeant)) return messages;
  return messages.map((message) =>
    isMeant(message) ? { ...message, ...spoken<Message>({ id: messageId, text }) } : message,
  );
}

/** What spoken turns need of their chat. */
interface SpokenChat<Message extends UIMessage> {
  change(change: (messages: Message[]) => Message[]): void;
  /** Wait until no response comes in. */
  rest(): Promise<void>;
  /** Read the answer with this id. */
  resume(messageId: string): Promise<void>;
}

/** Puts what is spoken, and its answers, into a chat: no request of its own asks for them. */
export class SpokenTurns<Message extends UIMessage> {
  readonly #chat: SpokenChat<Message>;
  /** The answers to what is not known yet, by the ids of the spoken messages. */
  readonly #unheard = new Map<string, string>();

  constructor(chat: SpokenChat<Message>) {
    this.#chat = chat;
  }

  async answer({ messageId, userMessageId: id, text }: SpokenTurn): Promise<void> {
    await this.#chat.rest();
    // Some models tell late what they heard, or speak unasked.
    if (text === "") this.#unheard.set(id, messageId);
    else this.#chat.change((shown) => withSpoken(shown, { id, text }, messageId));
    await this.#chat.resume(messageId);
  }

  hear(transcript: LiveEvents["transcript"]): void {
    const { messageId: id, text } = transcript;
    const answerId = this.#unheard.get(id);
    this.#unheard.delete(id);
    this.#chat.change((shown) =>
      answerId === undefined
        ? withTranscript(shown, transcript)
        : withSpoken(shown, { id, text }, answerId),
    );
  }
}
