import { useCallback, useEffect, useId, useRef, useState } from "react";
import { Button } from "../components/button.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { ApprovalCard, type CardState } from "./approval-card.tsx";
import { type ApprovalRequest, isOpen } from "./approval-requests.ts";
import type { Decide } from "./decision.ts";
import { unreadHint } from "./decision-buttons.tsx";

/** The number of cards on a page of a group. */
const PAGE_SIZE = 5;

/** The page of the request at an index; -1 for the index -1. */
function pageOf(index: number): number {
  return Math.floor(index / PAGE_SIZE);
}

interface ApprovalGroupProps {
  readonly requests: readonly ApprovalRequest[];
  readonly onDecide: Decide;
  /** Whether the person speaks with the agent: then phrases approve calls. */
  readonly isSpoken?: boolean;
}

/** Scroll to the top of a group that is taller than the visible area. */
function useScrollToTop(first: string | undefined) {
  const group = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each request that comes first is shown.
  useEffect(() => {
    // The thread scrolls to its end when it grows; the position is known after that.
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => {
        const top = group.current?.closest("[role=log]")?.getBoundingClientRect().top ?? 0;
        const card = group.current?.querySelector("[data-open]");
        if (card && card.getBoundingClientRect().top < top) card.scrollIntoView();
      });
    });
    return () => cancelAnimationFrame(frame);
  }, [first]);
  return group;
}

/** The states of the cards by approval id. */
function useCardStates() {
  const [states, setStates] = useState<ReadonlyMap<string, CardState>>(new Map());
  const setState = useCallback((approvalId: string, state: CardState) => {
    setStates((before) => new Map(before).set(approvalId, state));
  }, []);
  return [states, setState] as const;
}

interface PagerProps {
  readonly page: number;
  readonly count: number;
  readonly onPage: (page: number) => void;
}

function Pager({ page, count, onPage }: PagerProps) {
  const turn = (next: number) => {
    if (next >= 0 && next < count) onPage(next);
  };
  return (
    <nav className="row pager" aria-label="Pages of approvals">
      <Button size="sm" aria-disabled={page === 0} onClick={() => turn(page - 1)}>
        Previous
      </Button>
      <span className="text-sm">
        Page {page + 1} of {count}
      </span>
      <Button size="sm" aria-disabled={page === count - 1} onClick={() => turn(page + 1)}>
        Next
      </Button>
    </nav>
  );
}

/** Why all requests cannot be approved at once now; undefined if they can. */
function lockReason(states: readonly (CardState | undefined)[]): string | undefined {
  if (states.some((state) => state?.form !== undefined)) {
    return "A form is open. Finish or cancel it before you approve all.";
  }
  if (states.some((state) => state?.blocked !== undefined)) {
    return "Other people decide one of them.";
  }
  if (states.some((state) => state === undefined)) {
    return "Look at every page before you approve all.";
  }
  const unread = states.reduce((sum, state) => sum + (state?.unread ?? 0), 0);
  return unread > 0 ? unreadHint(unread) : undefined;
}

/** The approval requests of one message. Each decision is final; the agent waits for the last one. */
export function ApprovalGroup({ requests, onDecide, isSpoken }: ApprovalGroupProps) {
  const open = requests.filter((request) => isOpen(request));
  const group = useScrollToTop(open[0]?.approvalId);
  const [states, setState] = useCardStates();
  const [chosenPage, setPage] = useState(0);
  const hint = useId();
  const count = Math.ceil(requests.length / PAGE_SIZE);
  const page = Math.min(chosenPage, count - 1);
  const firstOpenPage = pageOf(requests.findIndex((request) => isOpen(request)));
  const isPageOpen = requests.some((request, index) => pageOf(index) === page && isOpen(request));
  useEffect(() => {
    if (!isPageOpen && firstOpenPage >= 0) setPage(firstOpenPage);
  }, [isPageOpen, firstOpenPage]);
  const isOnPage = (index: number) => pageOf(index) === page;
  const cards = requests.map((request, index) => {
    // A card keeps its forms and what was read while another page is open.
    const isRendered = isOnPage(index) || states.has(request.approvalId);
    return isRendered ? (
      <ApprovalCard
        key={request.approvalId}
        request={request}
        onDecide={onDecide}
        isHidden={!isOnPage(index)}
        {...(isSpoken !== undefined && { isSpoken })}
        onState={setState}
      />
    ) : null;
  });
  const isGroup = requests.length > 1;
  const reason = lockReason(open.map(({ approvalId }) => states.get(approvalId)));
  const isSending = open.some(({ progress }) => progress?.state === "sending");
  const approveAll = () => {
    for (const { approvalId } of open) {
      const digest = states.get(approvalId)?.digest;
      onDecide(approvalId, { approved: true, ...(digest !== undefined && { digest }) });
    }
  };
  const label = isGroup ? { role: "group", "aria-label": `${requests.length} approvals` } : {};
  return (
    <div {...label} ref={group} className="stack">
      {isGroup && (
        <div className="row between nowrap">
          <p className="text-sm" id={hint}>
            {open.length} of {requests.length} wait for you. {reason}
          </p>
          {open.length > 0 && (
            <GuardedButton
              className="no-shrink"
              isLocked={reason !== undefined || isSending}
              aria-describedby={hint}
              onAccept={approveAll}
            >
              {open.length === requests.length ? "Approve all" : `Approve all ${open.length}`}
            </GuardedButton>
          )}
        </div>
      )}
      {cards}
      {count > 1 && <Pager page={page} count={count} onPage={setPage} />}
    </div>
  );
}
