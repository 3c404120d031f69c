import type { UIMessageChunk } from "ai";
import { isRecord } from "../approvals/approval-requests.ts";

/** The progress of a call whose result the server holds back (D6). */
export type CallProgress = "running" | "done" | "failed";

/** The progress of calls by tool call id. */
export type ToolProgress = ReadonlyMap<string, CallProgress>;

const STATES: ReadonlySet<unknown> = new Set(["running", "done", "failed"]);

/** An external store of the transient `data-progress` parts, which are not part of any message. */
export class ToolProgressStore {
  #progress: ToolProgress = new Map();
  readonly #listeners = new Set<() => void>();

  readonly getSnapshot = (): ToolProgress => this.#progress;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Update the store from a received chunk; chunks of any other type are ignored. */
  readonly onChunk = (chunk: UIMessageChunk): void => {
    if (chunk.type !== "data-progress" || !isRecord(chunk.data)) return;
    const { toolCallId, state } = chunk.data;
    if (typeof toolCallId !== "string" || !STATES.has(state)) return;
    this.#progress = new Map(this.#progress).set(toolCallId, state as CallProgress);
    for (const listener of this.#listeners) listener();
  };
}
