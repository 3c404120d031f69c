import { isRecord } from "../is-record.ts";

/** The progress of a call whose result the server holds back (D6). */
export type CallProgress = "running" | "done" | "failed";

/** The progress of calls by tool call id. */
export type ToolProgress = ReadonlyMap<string, CallProgress>;

const STATES: ReadonlySet<unknown> = new Set(["running", "done", "failed"]);

/** The progress after a data part; the same object unless it is a `data-progress` part. */
export function withProgress(
  progress: ToolProgress,
  part: { readonly type: string; readonly data?: unknown },
): ToolProgress {
  if (part.type !== "data-progress" || !isRecord(part.data)) return progress;
  const { toolCallId, state } = part.data;
  if (typeof toolCallId !== "string" || !STATES.has(state)) return progress;
  return new Map(progress).set(toolCallId, state as CallProgress);
}
