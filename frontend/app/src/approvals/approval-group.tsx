import { Button, Group, Stack, Text } from "@mantine/core";
import { useCallback, useEffect, useId, useRef, useState } from "react";
import { ApprovalCard, requestName } from "./approval-card.tsx";
import type { ApprovalRequest, Decide } from "./approval-requests.ts";
import { unreadHint } from "./decision-buttons.tsx";

interface ApprovalGroupProps {
  readonly requests: readonly ApprovalRequest[];
  readonly onDecide: Decide;
}

/** Whether a text field with content has the focus, which a new card must not take. */
function isTyping(): boolean {
  const element = document.activeElement;
  return (
    (element instanceof HTMLTextAreaElement || element instanceof HTMLInputElement) &&
    element.value !== ""
  );
}

/** Scroll to the top of a card that is taller than the visible area. */
function scrollToTop(card: HTMLElement | null): void {
  const top = card?.closest("[role=log]")?.getBoundingClientRect().top ?? 0;
  if (card && card.getBoundingClientRect().top < top) card.scrollIntoView();
}

/** Focus the first open card whenever it changes. */
function useFocusOnFirst(first: string | undefined) {
  const card = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (first === undefined || isTyping()) return;
    card.current?.focus();
    // The thread scrolls to its end when it grows; the position is known after that.
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => scrollToTop(card.current));
    });
    return () => cancelAnimationFrame(frame);
  }, [first]);
  return card;
}

/** The number of long values per request that were not shown in full. */
function useUnreadCounts() {
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
  const setCount = useCallback((approvalId: string, unread: number) => {
    setCounts((before) => new Map(before).set(approvalId, unread));
  }, []);
  return [counts, setCount] as const;
}

/** The approval requests of one message; their decisions are sent together. */
export function ApprovalGroup({ requests, onDecide }: ApprovalGroupProps) {
  const open = requests.filter(({ decision }) => decision === undefined);
  const first = open[0]?.approvalId;
  const card = useFocusOnFirst(first);
  const hint = useId();
  const [counts, setCount] = useUnreadCounts();
  const unread = open.reduce((sum, { approvalId }) => sum + (counts.get(approvalId) ?? 0), 0);
  const cards = requests.map((request) => (
    <ApprovalCard
      key={request.approvalId}
      request={request}
      onDecide={onDecide}
      onUnread={setCount}
      {...(request.approvalId === first && {
        focusRef: (element) => {
          card.current = element;
        },
      })}
    />
  ));
  if (requests.length === 1) return cards;

  const approveAll = () => {
    for (const { approvalId } of open) onDecide(approvalId, { approved: true });
  };
  return (
    <Stack role="group" gap="sm" aria-label={`${requests.length} approvals`}>
      <Group justify="space-between">
        <Text size="sm" id={hint}>
          {open.length} of {requests.length} wait for you; the decisions are sent together.
          {unread > 0 && ` ${unreadHint(unread)}`}
        </Text>
        <Button
          variant="default"
          disabled={unread > 0}
          aria-describedby={hint}
          onClick={approveAll}
        >
          Approve all
        </Button>
      </Group>
      {cards}
    </Stack>
  );
}

/** The announcement of open requests for screen readers. */
export function announcement(requests: readonly ApprovalRequest[]): string {
  const open = requests.filter(({ decision }) => decision === undefined);
  if (open.length === 0) return "";
  const names = open.map(requestName).join(", ");
  return open.length === 1
    ? `Approval needed: ${names}`
    : `${open.length} approvals needed: ${names}`;
}
