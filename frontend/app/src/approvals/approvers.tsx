import { useQuery } from "@tanstack/react-query";
import { request } from "../api.ts";
import { VisibleText } from "../components/values.tsx";
import { APPROVALS_KEY } from "../sync/use-approval-badge.ts";
import { type ApprovalRequest, isRecord } from "./approval-requests.ts";

/** The people who decide a call in place of the user of the chat. */
export interface ApproverRule {
  readonly users: readonly string[];
  readonly roles: readonly string[];
  readonly quorum: number;
}

/** The decision of one person. */
interface PersonalDecision {
  readonly by: string;
  readonly approved: boolean;
  readonly reason?: string;
  /** Whether it changed what would run. */
  readonly edited?: boolean;
  /** Whether a later change has voided it. */
  readonly voided?: boolean;
}

/** What the server knows of an approval that other people decide. */
export interface SharedApproval {
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

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** Parse the rule of a descriptor; undefined if the user of the chat decides. */
export function approverRule(descriptor: unknown): ApproverRule | undefined {
  const rule = isRecord(descriptor) ? descriptor.approvers : undefined;
  if (!isRecord(rule)) return undefined;
  const quorum = typeof rule.quorum === "number" ? rule.quorum : 1;
  return { users: texts(rule.users), roles: texts(rule.roles), quorum };
}

async function loadApproval(approvalId: string): Promise<SharedApproval> {
  return (await request(`/approvals/${encodeURIComponent(approvalId)}`)).json();
}

/**
 * What the server knows of a request that may change while it waits, since other people decide it
 * or it has a preview; it is loaded again on its events.
 */
export function useSharedApproval({ approvalId, descriptor, preview }: ApprovalRequest) {
  const rule = approverRule(descriptor);
  const mayChange = rule !== undefined || preview !== undefined;
  const { data } = useQuery({
    queryKey: [...APPROVALS_KEY, approvalId],
    queryFn: () => loadApproval(approvalId),
    enabled: mayChange,
    refetchOnWindowFocus: "always",
  });
  return { rule, shared: mayChange ? data : undefined };
}

/** The entitled people in words: "finance or bob". */
function entitled({ roles, users }: ApproverRule): string {
  return [...roles, ...users].join(" or ");
}

function outcomeOf({ approved, edited, voided }: PersonalDecision): string {
  if (!approved) return "denied";
  if (voided) return "approved what was changed since, which no longer counts";
  return edited ? "changed the call and approved" : "approved";
}

/** Why the person cannot decide; undefined if the person can. */
export function blockedReason(rule: ApproverRule | undefined, shared: SharedApproval | undefined) {
  if (rule === undefined) return undefined;
  if (shared === undefined) return "Whether you may decide is being checked.";
  return shared.mayDecide ? undefined : `This call waits for ${entitled(rule)}.`;
}

interface ApproversProps {
  readonly rule: ApproverRule;
  readonly shared: SharedApproval | undefined;
}

/** Who may decide a request, who has, and how many people are missing. */
export function Approvers({ rule, shared }: ApproversProps) {
  const { decisions = [], missing = rule.quorum } = shared ?? {};
  return (
    <div className="stack gap-1 text-sm" role="status">
      <p>
        <VisibleText text={entitled(rule)} /> may approve.{" "}
        {missing === 1 ? "1 approval is missing." : `${missing} approvals are missing.`}
      </p>
      {decisions.length > 0 && (
        <ul aria-label="Decisions">
          {decisions.map((decision, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: decisions are only added.
            <li key={index}>
              <VisibleText text={decision.by} /> {outcomeOf(decision)}
              {decision.reason !== undefined && (
                <>
                  : “<VisibleText text={decision.reason} />”
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The schema of an answer in place of the tool, if one is accepted. */
export function responseSchema({ descriptor }: ApprovalRequest) {
  const schema = isRecord(descriptor) ? descriptor.responseSchema : undefined;
  // A form has the fields of an object.
  return isRecord(schema) && isRecord(schema.properties) ? schema : undefined;
}
