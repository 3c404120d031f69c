import type { ApprovalRequest } from "../approvals/approval-requests.ts";

/** A decision of a person, as the server recorded it. */
export interface RecordedDecision {
  readonly by: string;
  readonly at: string;
  readonly approved: boolean;
  readonly reason?: string;
  /** Whether a later change of the call has voided it. */
  readonly voided?: boolean;
}

/** An approval, as `GET /approvals` lists it. */
export interface Approval {
  readonly approvalId: string;
  readonly chatId: string;
  readonly requester: string;
  readonly tool: string;
  readonly title?: string;
  readonly toolMetadata?: unknown;
  readonly agent: string;
  readonly state: string;
  readonly requestedAt: string;
  readonly expiresAt: string;
  readonly arguments?: unknown;
  /** The arguments that were approved in place of the requested ones. */
  readonly edits?: unknown;
  readonly defaults?: unknown;
  readonly hint?: string;
  readonly editable?: boolean;
  readonly rememberable?: boolean;
  readonly grantTtl?: number;
  readonly schema?: unknown;
  readonly changed?: ApprovalRequest["changed"];
  readonly payload?: unknown;
  readonly payloadSchema?: Readonly<Record<string, unknown>>;
  /** The people who decide in place of the requester. */
  readonly approvers?: unknown;
  /** What the call would do. */
  readonly preview?: unknown;
  /** The digest of what would run. */
  readonly digest?: string;
  /** The schema of an answer in place of the tool. */
  readonly responseSchema?: unknown;
  readonly decisions: readonly RecordedDecision[];
  /** What helps to find out what happened to a call whose outcome is unknown. */
  readonly unknown?: {
    readonly key: string;
    readonly hasLookUp: boolean;
    readonly isIdempotent: boolean;
  };
}
