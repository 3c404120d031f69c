import { TimeLeft } from "../approvals/time-left.tsx";
import { PageLink } from "../components/page-link.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { age } from "./age.ts";
import type { Approval } from "./approval.ts";
import { approvalName } from "./approval-name.ts";
import { routeUrl } from "./use-inbox-route.ts";

interface ApprovalRowProps {
  readonly approval: Approval;
  readonly isSelected: boolean;
  readonly onSelect: (isSelected: boolean) => void;
  readonly onOpen: () => void;
}

/** A waiting approval in the list; its card, with all it shows, is one step away. */
export function ApprovalRow({ approval, isSelected, onSelect, onOpen }: ApprovalRowProps) {
  const name = approvalName(approval);
  return (
    <li className="approval-row">
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={isSelected}
        onChange={(event) => onSelect(event.currentTarget.checked)}
      />
      <div className="stack gap-1 grow">
        <PageLink
          className="approval-link"
          href={routeUrl({ view: "waiting", ids: [approval.approvalId] })}
          onOpen={onOpen}
        >
          {name}
        </PageLink>
        <p className="text-sm dim approval-facts">
          <span className="mono">{visibleName(approval.tool)}</span>
          <span>{visibleName(approval.agent)}</span>
          <span>for {visibleName(approval.requester)}</span>
          <time dateTime={approval.requestedAt}>{age(approval.requestedAt)}</time>
          <TimeLeft until={approval.expiresAt} />
        </p>
      </div>
    </li>
  );
}
