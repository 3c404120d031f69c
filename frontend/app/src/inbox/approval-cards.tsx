import { useEffect, useState } from "react";
import { ApprovalGroup } from "../approvals/approval-group.tsx";
import { isOpen } from "../approvals/approval-requests.ts";
import type { Decide, DecisionsInProgress } from "../approvals/decision.ts";
import { useFocusAfterDecision } from "../approvals/use-focus-after-decision.ts";
import { Alert } from "../components/alert.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { Spinner } from "../components/spinner.tsx";
import { momentText } from "../moment-text.ts";
import { rootPath } from "../page-paths.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { useSession } from "../use-session.ts";
import type { Approval } from "./approval.ts";
import { approvalName } from "./approval-name.ts";
import { useOpenApprovals } from "./use-inbox.ts";
import { requestWith, useInboxDecisions } from "./use-inbox-decisions.ts";

const STATES: Readonly<Record<string, string>> = {
  requested: "waits",
  executing: "approved, running",
  executed: "approved, done",
  failed: "approved, failed",
  unknown: "approved, outcome unknown",
  superseded: "withdrawn",
  refused: "approved, not run",
  asked_again: "approved, asks again",
};

/** What became of an approval, in words. */
function outcome(approval: Approval, decisions: DecisionsInProgress): string {
  const progress = decisions.get(approval.approvalId);
  const counted = approval.decisions.filter(({ voided }) => voided !== true);
  const decision = counted.at(-1);
  if (decision === undefined && progress?.state === "accepted") {
    return progress.decision.approved ? "approved" : "denied";
  }
  const state = STATES[approval.state] ?? approval.state;
  if (decision === undefined) return state;
  const names = counted.map(({ by }) => visibleName(by)).join(" and ");
  return `${state}, by ${names}, ${momentText(Date.parse(decision.at))}`;
}

/** Whether this page has sent a decision that is recorded, and its chat could not go on. */
function isHeldUp(approval: Approval, decisions: DecisionsInProgress): boolean {
  const progress = decisions.get(approval.approvalId);
  return progress?.state === "failed" && ["approved", "denied"].includes(approval.state);
}

/** Whether the server and this page have no decision yet. */
function isWaiting(approval: Approval, decisions: DecisionsInProgress): boolean {
  return approval.state === "requested" && isOpen(requestWith(approval, decisions));
}

interface ClosedProps {
  readonly approval: Approval;
  readonly decisions: DecisionsInProgress;
  readonly onDecide: Decide;
}

/** An approval that waits no more, with its chat. */
function Closed({ approval, decisions, onDecide }: ClosedProps) {
  const { data: session } = useSession();
  const progress = decisions.get(approval.approvalId);
  if (progress?.state === "failed" && isHeldUp(approval, decisions)) {
    const retry = () => onDecide(approval.approvalId, progress.decision);
    return (
      <Alert tone="danger" isAnnounced title={`${approvalName(approval)}: the chat waits`}>
        <p className="text-sm literal">{progress.message}</p>
        <div>
          <GuardedButton size="sm" onAccept={retry}>
            Retry
          </GuardedButton>
        </div>
      </Alert>
    );
  }
  return (
    <p
      tabIndex={-1}
      className="closed-approval focus-always"
      data-tool-call-id={approval.approvalId}
    >
      <span className="strong">{approvalName(approval)}</span>{" "}
      <span className="dim">— {outcome(approval, decisions)}.</span>{" "}
      {/* The chat of another person cannot be opened. */}
      {[undefined, null, approval.requester].includes(session?.user) && (
        <a href={`${rootPath()}?chat=${encodeURIComponent(approval.chatId)}`}>Open the chat</a>
      )}
    </p>
  );
}

/** The text for screen readers when an approval has been decided. */
function useOutcomes(approvals: readonly Approval[], decisions: DecisionsInProgress): string {
  const [text, setText] = useState("");
  const closed = approvals
    .filter((approval) => !isWaiting(approval, decisions))
    .map((approval) => `${approvalName(approval)}: ${outcome(approval, decisions)}.`)
    .join(" ");
  useEffect(() => setText(closed), [closed]);
  return text;
}

/**
 * The cards of approvals, in full, with all of their guards. Several are approved at once only after
 * each of them was shown; each decision is sent and recorded by itself.
 */
export function ApprovalCards({ ids }: { readonly ids: readonly string[] }) {
  const open = useOpenApprovals(ids);
  const { decisions, decide } = useInboxDecisions();
  useFocusAfterDecision();
  // A card that came before others would move to another page, and count as shown there.
  const isLoaded = open.every(
    ({ approval, problem }) => approval !== undefined || problem !== undefined,
  );
  const approvals = open.flatMap(({ approval }) => (approval === undefined ? [] : [approval]));
  const isSending = ({ approvalId }: Approval) => decisions.get(approvalId)?.state === "sending";
  const isDone = approvals.every(
    (approval) => !isWaiting(approval, decisions) && !isSending(approval),
  );
  // A card stays in its place until the last decision of this page, so that no button moves.
  const shown = isDone
    ? []
    : approvals.filter(
        (approval) =>
          isWaiting(approval, decisions) ||
          isSending(approval) ||
          decisions.get(approval.approvalId)?.state === "accepted",
      );
  const closed = approvals.filter((approval) => !shown.includes(approval));
  const text = useOutcomes(approvals, decisions);
  return (
    <div className="stack">
      <p className="visually-hidden" role="status">
        {text}
      </p>
      {open.map(({ id, approval, problem }) => {
        if (approval !== undefined) return null;
        if (problem === undefined) return <Spinner key={id} />;
        return (
          <p key={id} className="danger" role="alert">
            {problem}
          </p>
        );
      })}
      {isLoaded && shown.length > 0 && (
        <ApprovalGroup
          requests={shown.map((approval) => requestWith(approval, decisions))}
          onDecide={decide}
        />
      )}
      {closed.map((approval) => (
        <Closed
          key={approval.approvalId}
          approval={approval}
          decisions={decisions}
          onDecide={decide}
        />
      ))}
    </div>
  );
}
