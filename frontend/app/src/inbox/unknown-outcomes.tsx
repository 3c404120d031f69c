import { useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { ArgumentTable } from "../approvals/argument-table.tsx";
import { unreadHint } from "../approvals/decision-buttons.tsx";
import { Button } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { TextArea } from "../components/text-area.tsx";
import { TextWarnings } from "../components/text-warnings.tsx";
import { ReadingContext, useReading } from "../components/use-unread-texts.ts";
import { VisibleText } from "../components/visible-text.tsx";
import { errorMessage } from "../error-message.ts";
import { isRecord } from "../is-record.ts";
import { momentText } from "../moment-text.ts";
import { APPROVALS_KEY } from "../sync/approvals-key.ts";
import type { Approval } from "./approval.ts";
import { approvalName } from "./approval-name.ts";
import { NO_FILTER, type Resolution, resolveOutcome } from "./inbox-api.ts";
import { useApprovalList } from "./use-inbox.ts";

const MAX_REASON = 2_000;

interface ResolveProps {
  readonly approval: Approval;
  readonly unread: number;
}

/** The form with which a person says what happened. */
function Resolve({ approval, unread }: ResolveProps) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<string>();
  const isLocked = reason.trim() === "" || isSending || unread > 0;
  const resolve = async (outcome: Resolution) => {
    setSending(true);
    setProblem(undefined);
    try {
      await resolveOutcome(approval.approvalId, outcome, reason);
      await client.invalidateQueries({ queryKey: APPROVALS_KEY });
    } catch (error) {
      setProblem(errorMessage(error));
      setSending(false);
    }
  };
  const button = (outcome: Resolution) => ({
    isLocked,
    onAccept: () => void resolve(outcome),
  });
  return (
    <div className="stack gap-2">
      <TextArea
        label="What did you find out?"
        description="Your name and this reason are recorded."
        maxLength={MAX_REASON}
        value={reason}
        error={problem}
        onChange={setReason}
      />
      {unread > 0 && (
        <p className="text-sm strong" role="status">
          {unreadHint(unread)}
        </p>
      )}
      <div className="row">
        <GuardedButton {...button("executed")}>It took effect</GuardedButton>
        <GuardedButton {...button("failed")}>It did not take effect</GuardedButton>
        {approval.unknown?.isIdempotent === true && (
          <GuardedButton {...button("run-again")} variant="danger">
            Run it again
          </GuardedButton>
        )}
      </div>
    </div>
  );
}

/** A call that may have taken effect, with what helps to find that out. */
function UnknownOutcome({ approval }: { readonly approval: Approval }) {
  const [reading, unread] = useReading();
  const heading = useId();
  const { unknown, decisions } = approval;
  const [decision] = decisions;
  return (
    <ReadingContext value={reading}>
      <section className="card stack" aria-labelledby={heading}>
        <div className="stack gap-1">
          <h3 className="text-lg strong" id={heading}>
            {approvalName(approval)}
          </h3>
          <p className="text-sm dim">
            <VisibleText text={approval.agent} /> called{" "}
            <span className="mono">
              <VisibleText text={approval.tool} />
            </span>{" "}
            for <VisibleText text={approval.requester} />
            {decision !== undefined && (
              <>
                ; approved by <VisibleText text={decision.by} />,{" "}
                {momentText(Date.parse(decision.at))}
              </>
            )}
            .
          </p>
          <p className="text-sm">
            The server stopped while this call ran. Check in the other system whether it took
            effect.
          </p>
          <TextWarnings name="Name of the tool" value={approval.tool} />
        </div>
        <ArgumentTable
          value={approval.edits ?? approval.arguments}
          label="Arguments"
          defaults={isRecord(approval.defaults) ? approval.defaults : {}}
        />
        {unknown !== undefined && (
          <div className="stack gap-1">
            <div className="row nowrap">
              <p className="text-sm grow">
                <span className="dim">Key of the call: </span>
                <code className="literal">{unknown.key}</code>
              </p>
              <CopyButton label="Copy the key" text={unknown.key} />
            </div>
            {unknown.hasLookUp && (
              <p className="text-sm dim">
                The tool looks its outcome up by this key when the chat goes on.
              </p>
            )}
          </div>
        )}
        <Resolve approval={approval} unread={unread} />
      </section>
    </ReadingContext>
  );
}

/** The calls of all chats that may have taken effect. */
export function UnknownOutcomes() {
  const list = useApprovalList("unknown", NO_FILTER);
  return (
    <div className="stack">
      {list.problem !== undefined && (
        <p className="danger" role="alert">
          {list.problem}
        </p>
      )}
      {list.approvals.map((approval) => (
        <UnknownOutcome key={approval.approvalId} approval={approval} />
      ))}
      {list.isLoaded && list.approvals.length === 0 && (
        <p className="dim" role="status">
          Every outcome is known.
        </p>
      )}
      {list.hasMore && (
        <div>
          <Button onClick={() => void list.loadMore()}>Show more</Button>
        </div>
      )}
    </div>
  );
}
