import type { UIMessageChunk } from "ai";
import { isRecord } from "../approvals/request.ts";

/** How far a call is whose result the server still holds back. */
export type Progress = "running" | "done" | "failed";

/** What passes by beside the messages: who speaks, and how far calls are. */
export interface CallNotes {
  readonly agents: ReadonlyMap<string, string>;
  readonly progress: ReadonlyMap<string, Progress>;
}

const STATES: ReadonlySet<unknown> = new Set(["running", "done", "failed"]);

/** Keeps what transient parts tell of calls; no message holds them. */
export class NoteKeeper {
  #notes: CallNotes = { agents: new Map(), progress: new Map() };
  #agent: string | undefined;
  readonly #listeners = new Set<() => void>();

  readonly notes = (): CallNotes => this.#notes;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Look at a chunk as it comes in. */
  readonly hear = (chunk: UIMessageChunk): void => {
    if (chunk.type === "start") this.#agent = undefined;
    if (chunk.type === "data-agent") this.#agent = this.#named(chunk.data);
    if (chunk.type === "data-progress") this.#hearProgress(chunk.data);
    if (chunk.type === "tool-input-start" || chunk.type === "tool-input-available") {
      this.#attribute(chunk.toolCallId);
    }
  };

  #named(data: unknown): string | undefined {
    return isRecord(data) && typeof data.name === "string" ? data.name : undefined;
  }

  #attribute(toolCallId: string): void {
    const { agents } = this.#notes;
    if (this.#agent === undefined || agents.has(toolCallId)) return;
    this.#set({ agents: new Map(agents).set(toolCallId, this.#agent) });
  }

  #hearProgress(data: unknown): void {
    if (!isRecord(data) || typeof data.toolCallId !== "string" || !STATES.has(data.state)) return;
    const { progress } = this.#notes;
    this.#set({ progress: new Map(progress).set(data.toolCallId, data.state as Progress) });
  }

  #set(change: Partial<CallNotes>): void {
    this.#notes = { ...this.#notes, ...change };
    for (const listener of this.#listeners) listener();
  }
}
