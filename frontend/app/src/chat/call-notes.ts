import type { UIMessageChunk } from "ai";
import { isRecord } from "../approvals/request.ts";

/** How far a call is whose result the server still holds back. */
export type Progress = "running" | "done" | "failed";

/** How far calls are, by their ids; it passes by beside the messages. */
export type CallNotes = ReadonlyMap<string, Progress>;

const STATES: ReadonlySet<unknown> = new Set(["running", "done", "failed"]);

/** Keeps what transient parts tell of calls; no message holds them. */
export class NoteKeeper {
  #notes: CallNotes = new Map();
  readonly #listeners = new Set<() => void>();

  readonly notes = (): CallNotes => this.#notes;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Look at a chunk as it comes in. */
  readonly hear = (chunk: UIMessageChunk): void => {
    if (chunk.type !== "data-progress" || !isRecord(chunk.data)) return;
    const { toolCallId, state } = chunk.data;
    if (typeof toolCallId !== "string" || !STATES.has(state)) return;
    this.#notes = new Map(this.#notes).set(toolCallId, state as Progress);
    for (const listener of this.#listeners) listener();
  };
}
