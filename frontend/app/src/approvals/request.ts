import type { PendingApproval } from "sluicegate";

/** What the server tells about the tool of an approval (`approvalDescriptor`). */
export interface Descriptor {
  /** The agent that wants to call it. */
  readonly agent?: string;
  readonly expiresAt?: string;
  readonly editable: boolean;
  readonly rememberable: boolean;
  readonly schema?: Record<string, unknown>;
}

/** A question to the person: may this call run, with these arguments? */
export interface ApprovalRequest extends PendingApproval {
  /** What the tool calls itself for people. */
  readonly title?: string;
  /** An answer that was given and goes out with the others. */
  readonly answer?: "approved" | "denied";
}

/** The person's answer. */
export type Decision =
  | {
      readonly approved: true;
      /** Other arguments than those asked for (A7). */
      readonly edited?: Record<string, unknown>;
      /** Approve later calls of the tool in this chat without asking (A8). */
      readonly remember?: boolean;
    }
  | { readonly approved: false; readonly reason?: string };

export type Decide = (approvalId: string, decision: Decision) => void;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Read a descriptor; of one that is no object nothing is allowed. */
export function readDescriptor(value: unknown): Descriptor {
  if (!isRecord(value)) return { editable: false, rememberable: false };
  return {
    editable: value.editable === true,
    rememberable: value.rememberable === true,
    ...(typeof value.agent === "string" && { agent: value.agent }),
    ...(typeof value.expiresAt === "string" && { expiresAt: value.expiresAt }),
    ...(isRecord(value.schema) && { schema: value.schema }),
  };
}
