import { useQuery } from "@tanstack/react-query";
import { request } from "../api.ts";
import { APPROVALS_KEY } from "../sync/approvals-key.ts";
import type { ApprovalRequest } from "./approval-requests.ts";
import { parseApproverRule } from "./parse-approver-rule.ts";

/** The decision of one person. */
export interface PersonalDecision {
  readonly by: string;
  readonly approved: boolean;
  readonly reason?: string;
  /** Whether it changed what would run. */
  readonly edited?: boolean;
  /** Whether a later change has voided it. */
  readonly voided?: boolean;
}

/** What the server knows of an approval that other people decide, or that has a preview. */
export interface ChangingApproval {
  readonly decisions: readonly PersonalDecision[];
  readonly missing: number;
  readonly mayDecide: boolean;
  /** Of what would run now; a yes states it. */
  readonly digest: string;
  /** What the call would do, if its tool says it. */
  readonly preview?: unknown;
  /** The arguments to which one of the people has changed the call. */
  readonly edits?: Record<string, unknown>;
}

async function loadApproval(approvalId: string): Promise<ChangingApproval> {
  return (await request(`/approvals/${encodeURIComponent(approvalId)}`)).json();
}

/**
 * What the server knows of a request that may change while it waits, since other people decide it
 * or it has a preview; it is loaded again on its events.
 */
export function useApprovalFromServer({ approvalId, descriptor, preview }: ApprovalRequest) {
  const rule = parseApproverRule(descriptor);
  const mayChange = rule !== undefined || preview !== undefined;
  const { data } = useQuery({
    queryKey: [...APPROVALS_KEY, approvalId],
    queryFn: () => loadApproval(approvalId),
    enabled: mayChange,
    refetchOnWindowFocus: "always",
  });
  return { rule, shared: mayChange ? data : undefined };
}
