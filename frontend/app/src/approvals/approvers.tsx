import { VisibleText } from "../components/visible-text.tsx";
import type { ApproverRule } from "./parse-approver-rule.ts";
import type { ChangingApproval, PersonalDecision } from "./use-approval-from-server.ts";

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
export function blockedReason(
  rule: ApproverRule | undefined,
  shared: ChangingApproval | undefined,
) {
  if (rule === undefined) return undefined;
  if (shared === undefined) return "Whether you may decide is being checked.";
  return shared.mayDecide ? undefined : `This call waits for ${entitled(rule)}.`;
}

interface ApproversProps {
  readonly rule: ApproverRule;
  readonly shared: ChangingApproval | undefined;
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
