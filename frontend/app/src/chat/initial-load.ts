import { loadMessages, type StoredMessages } from "./stored-messages.ts";

/** Milliseconds for which the page waits for its initial chat before it is rendered without one. */
const MAX_WAIT = 100;

/** The loading of the chat that the page was opened with. */
export class InitialLoad {
  /** Undefined until they are loaded. */
  stored: StoredMessages | undefined;
  #loading: Promise<StoredMessages> | undefined;

  constructor(readonly id: string) {
    this.#loading = loadMessages(id).then((stored) => {
      this.stored = stored;
      return stored;
    });
  }

  /** The messages, for the first caller; another one has to load them. */
  take(): Promise<StoredMessages> | undefined {
    const loading = this.#loading;
    this.#loading = undefined;
    return loading;
  }

  /** Resolves when the messages are loaded or cannot be loaded, and at the latest after a moment. */
  async settle(): Promise<void> {
    const waiting = new Promise((resolve) => setTimeout(resolve, MAX_WAIT));
    await Promise.race([this.#loading?.catch(() => {}), waiting]);
  }
}

let initial: InitialLoad | undefined;

/**
 * Load the chat that the page is opened with; resolves when the page can be rendered.
 *
 * The server has the browser begin this request together with that of the script, so the response
 * is usually there: the first rendering shows the chat.
 */
export async function loadInitialChat(id: string | undefined): Promise<void> {
  if (id === undefined) return;
  initial = new InitialLoad(id);
  await initial.settle();
}

/** The loading of this chat if the page was opened with it, for the first caller. */
export function takeInitialLoad(id: string): InitialLoad | undefined {
  const taken = initial?.id === id ? initial : undefined;
  initial = undefined;
  return taken;
}
