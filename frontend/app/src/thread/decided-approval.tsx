import { useEffect, useState } from "react";
import type { Grant } from "sluicegate";
import { listGrants } from "../api.ts";
import { type ArgumentChange, argumentChanges } from "../approvals/argument-changes.ts";
import { callSummary } from "../approvals/call-summary.ts";
import { useChatContext } from "../chat/chat-context.ts";
import { Disclosure } from "../components/disclosure.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { momentText } from "../moment-text.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { type ApprovalTrace, type ToolPart, toolInput, toolPayload } from "./tool-part.ts";

/** The changes of an edit, each with the value before it. */
export function Changes({ changes }: { readonly changes: readonly ArgumentChange[] }) {
  return (
    <ul className="plain-list text-sm" aria-label="Changes">
      {changes.map(({ name, before, after }) => (
        <li key={name}>
          <span className="dim">{visibleName(name)}: </span>
          <del>{before ?? "nothing"}</del> → <ins>{after ?? "nothing"}</ins>
        </li>
      ))}
    </ul>
  );
}

/** What a grant covers, as the server lists it; it is not listed any more after its end. */
function GrantScope({ grantId }: { readonly grantId: string }) {
  const { chatId } = useChatContext();
  const [grant, setGrant] = useState<Grant | "ended">();
  useEffect(() => {
    listGrants(chatId).then(
      (grants) => setGrant(grants.find(({ id }) => id === grantId) ?? "ended"),
      () => {},
    );
  }, [chatId, grantId]);
  if (grant === undefined) return null;
  if (grant === "ended") return <p className="text-sm">The grant has ended since.</p>;
  const where = callSummary(grant.where);
  return (
    <p className="text-sm">
      Granted at {momentText(Date.parse(grant.grantedAt))} for{" "}
      {where === "" ? "any arguments" : <VisibleText text={where} />}, until{" "}
      {momentText(Date.parse(grant.expiresAt))}.
    </p>
  );
}

interface DecidedApprovalProps {
  readonly part: ToolPart;
  readonly trace: ApprovalTrace | undefined;
}

/** The trace of an approval: who decided when, with which changes or reason, or which grant. */
export function DecidedApproval({ part, trace = {} }: DecidedApprovalProps) {
  const { approval } = part;
  if (approval?.approved === undefined) return null;
  const { decidedAt, decidedBy, edits, editedPayload, grantId, resolution } = trace;
  if (approval.isAutomatic === true || grantId !== undefined) {
    return (
      <>
        <p className="text-sm dim">Allowed by an earlier approval, without asking.</p>
        {grantId !== undefined && (
          <Disclosure label="The grant">
            <GrantScope grantId={grantId} />
          </Disclosure>
        )}
      </>
    );
  }
  const changes = [
    ...(edits === undefined ? [] : argumentChanges(toolInput(part), edits)),
    ...(editedPayload === undefined
      ? []
      : argumentChanges(toolPayload(part), editedPayload, "answer")),
  ];
  return (
    <>
      {decidedBy !== undefined && (
        <p className="text-sm dim">
          {approval.approved ? "Approved" : "Denied"} by <VisibleText text={decidedBy} />
          {decidedAt !== undefined && `, ${momentText(decidedAt)}`}
          {changes.length > 0 && ", with changes"}
        </p>
      )}
      {changes.length > 0 && <Changes changes={changes} />}
      {approval.reason !== undefined && part.errorText === undefined && (
        <p className="text-sm">
          <span className="dim">Reason:</span> <VisibleText text={approval.reason} />
        </p>
      )}
      {resolution !== undefined && (
        <p className="text-sm">
          <span className="dim">Found out later by a person:</span> it{" "}
          {resolution.outcome === "executed" ? "took effect" : "did not take effect"}.{" "}
          <VisibleText text={resolution.reason} />
        </p>
      )}
    </>
  );
}
