import { isRecord } from "../is-record.ts";

/** What a remote worker declares of its tool. */
export interface ToolOrigin {
  readonly worker: string;
  /** Its own name of the tool, if the agent calls it by another. */
  readonly tool?: string;
  readonly description?: string;
  /** Whether the worker warns that the tool may destroy data. */
  readonly isDestructive: boolean;
}

/** What the worker of a tool declares, from the metadata of the tool. */
export function toolOrigin(metadata: unknown): ToolOrigin | undefined {
  if (!isRecord(metadata) || typeof metadata.worker !== "string") return undefined;
  const { worker, tool, description, destructive } = metadata;
  return {
    worker,
    ...(typeof tool === "string" && { tool }),
    ...(typeof description === "string" && { description }),
    isDestructive: destructive === true,
  };
}
