import { type ApprovalDescriptor, approvalDescriptor } from "sluicegate";
import { isRecord } from "../is-record.ts";

/** The server's description of a gated tool (`approvalDescriptor`). */
export interface Descriptor extends ApprovalDescriptor {
  /** The values that the tool uses for omitted arguments. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** The phrase that approves the call when it is spoken in a live chat. */
  readonly byVoice?: string;
}

/** Parse a descriptor; an invalid one permits neither edits nor grants. */
export function parseDescriptor(value: unknown): Descriptor {
  const { byVoice, defaults } = isRecord(value) ? value : {};
  return {
    ...approvalDescriptor(value),
    defaults: isRecord(defaults) ? defaults : {},
    ...(typeof byVoice === "string" && { byVoice }),
  };
}

/** Whether the time for a decision is over. */
export function isExpired({ expiresAt }: Descriptor, now: number): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= now;
}
