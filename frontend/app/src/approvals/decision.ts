import type { Remember } from "sluicegate";

/** The decision of a person. */
export type Decision =
  | {
      readonly approved: true;
      /** Other arguments than the requested ones (A7). */
      readonly edit?: Record<string, unknown>;
      /** Another payload than the requested one (A7). */
      readonly payload?: unknown;
      /** Grant later calls of the tool in this chat (A8). */
      readonly remember?: Remember;
      /** The digest of what the card showed, if the server gave one. */
      readonly digest?: string;
    }
  | {
      readonly approved: false;
      readonly reason?: string;
      /** An answer in place of the tool. */
      readonly response?: Record<string, unknown>;
    };

export type Decide = (approvalId: string, decision: Decision) => void;

/** What the server recorded of a decision. */
export interface DecisionTrace {
  readonly decidedBy?: string;
  /** In milliseconds since the epoch. */
  readonly decidedAt?: number;
}

/** The state of a decision: it is being sent, the server accepted it, or it failed. */
export type DecisionProgress =
  | { readonly state: "sending"; readonly decision: Decision }
  | { readonly state: "accepted"; readonly decision: Decision; readonly trace: DecisionTrace }
  | {
      readonly state: "failed";
      readonly decision: Decision;
      readonly message: string;
      /** Whether the server may have the decision, since its response is missing. */
      readonly isUnconfirmed?: boolean;
      /** Whether the call is another one than the card showed. */
      readonly isOutdated?: boolean;
    };

/** The decisions of this page by approval id. */
export type DecisionsInProgress = ReadonlyMap<string, DecisionProgress>;

/** What became of a decision that failed, in words that follow "was" or stand alone. */
export function failureWords(progress: DecisionProgress): "not sent" | "not confirmed" {
  return progress.state === "failed" && progress.isUnconfirmed ? "not confirmed" : "not sent";
}
