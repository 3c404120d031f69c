import type { UIMessage, UIMessageChunk } from "ai";
import type { Direction, WireLog } from "./log.ts";

/** A request to go on with a chat, as it is posted. */
export interface Posted {
  readonly id: string;
  readonly messages: readonly UIMessage[];
  readonly [key: string]: unknown;
}

/** What a server reads of a request beside its last message; the history before that is decoration. */
const READ = ["id", "trigger", "messageId", "edits", "remember"];

/** Looks at everything that passes between the page and the server. */
export class Inspection {
  readonly #log: WireLog;
  readonly #hear: (chunk: UIMessageChunk) => void;
  /** How the page asks for results to be released, which stands in the headers of a request. */
  release = "";

  constructor(log: WireLog, hear: (chunk: UIMessageChunk) => void) {
    this.#log = log;
    this.#hear = hear;
  }

  send(posted: Posted): void {
    const message = posted.messages.at(-1);
    // A message of the user begins an exchange; everything else goes on with one.
    if (message?.role === "user") this.#log.clear();
    const read = Object.entries(posted).filter(([key]) => READ.includes(key));
    this.#begin({ type: "send", ...Object.fromEntries(read), message });
  }

  resume(chatId: string): void {
    this.#log.clear();
    this.#begin({ type: "resume", id: chatId });
  }

  stop(chatId: string): void {
    this.#begin({ type: "stop", id: chatId });
  }

  chunk(chunk: UIMessageChunk): void {
    this.#log.add("server", "chunk", chunk);
    this.#hear(chunk);
  }

  frame(dir: Direction, frame: object): void {
    this.#log.add(dir, "frame", frame);
  }

  #begin(request: object): void {
    const headers = { "x-ai-sdk": "7", "x-release": this.release };
    this.#log.begin({ ...request, headers });
  }
}
