import type { ChatTransport, UIMessage } from "ai";
import { PlayerTransport } from "sluicegate/testing";

/** Milliseconds between two chunks, about as a model writes. */
const PACE = 35;

type SendOptions = Parameters<ChatTransport<UIMessage>["sendMessages"]>[0];
type Chunks = Awaited<ReturnType<ChatTransport<UIMessage>["sendMessages"]>>;

/** The answer to the approval of the last message; undefined before it is given. */
function decision(messages: readonly UIMessage[]): boolean | undefined {
  const parts = (messages.at(-1)?.parts ?? []) as readonly {
    readonly approval?: { readonly approved?: boolean };
  }[];
  return parts.find(({ approval }) => approval?.approved !== undefined)?.approval?.approved;
}

/** The messages without the reasons of denials, which were not recorded. */
function withoutReasons(messages: readonly UIMessage[]): UIMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      if (!("approval" in part) || part.approval?.approved === undefined) return part;
      const { id, approved } = part.approval;
      return { ...part, approval: { id, approved } } as typeof part;
    }),
  }));
}

/**
 * Plays two recordings of one request, which was approved in the first one and denied in the second
 * one. Both have the same ids, so the decision chooses which of them continues.
 */
export class RecordedTransport implements ChatTransport<UIMessage> {
  readonly #approved: PlayerTransport;
  readonly #denied: PlayerTransport;

  constructor(approved: string, denied: string) {
    const pause = () => new Promise((resolve) => setTimeout(resolve, PACE));
    this.#approved = new PlayerTransport(approved, { paced: true, pause });
    this.#denied = new PlayerTransport(denied, { paced: true, pause });
  }

  async sendMessages(options: SendOptions): Promise<Chunks> {
    const request = { ...options, messages: withoutReasons(options.messages) };
    const answer = decision(options.messages);
    if (answer !== undefined) {
      return (answer ? this.#approved : this.#denied).sendMessages(request);
    }
    const [chunks, unread] = await Promise.all([
      this.#approved.sendMessages(request),
      this.#denied.sendMessages(request),
    ]);
    await unread.cancel();
    return chunks;
  }

  async reconnectToStream(): Promise<null> {
    return null;
  }
}
