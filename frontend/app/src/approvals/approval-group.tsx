import { Button, Group, Stack, Text } from "@mantine/core";
import { useEffect, useRef } from "react";
import { ApprovalCard, nameOf } from "./approval-card.tsx";
import type { ApprovalRequest, Decide } from "./request.ts";

interface ApprovalGroupProps {
  readonly requests: readonly ApprovalRequest[];
  readonly onDecide: Decide;
}

/** Whether somebody is in the middle of writing, whom a new card must not interrupt. */
function isWriting(): boolean {
  const element = document.activeElement;
  return (
    (element instanceof HTMLTextAreaElement || element instanceof HTMLInputElement) &&
    element.value !== ""
  );
}

/** Scrolls back to where a card begins that is taller than what is left of the screen. */
function showFromItsStart(card: HTMLElement | null): void {
  const shown = card?.closest("[role=log]")?.getBoundingClientRect().top ?? 0;
  if (card && card.getBoundingClientRect().top < shown) card.scrollIntoView();
}

/** Puts the focus on the first open card, each time another one is the first. */
function useFocusOnFirst(first: string | undefined) {
  const card = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (first === undefined || isWriting()) return;
    card.current?.focus();
    // The thread follows its end when it grows; only after that it is known what can be seen.
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => showFromItsStart(card.current));
    });
    return () => cancelAnimationFrame(frame);
  }, [first]);
  return card;
}

/**
 * The approvals that one message waits for: one card each, and their answers go out together.
 */
export function ApprovalGroup({ requests, onDecide }: ApprovalGroupProps) {
  const open = requests.filter(({ answer }) => answer === undefined);
  const first = open[0]?.approvalId;
  const card = useFocusOnFirst(first);
  const cards = requests.map((request) => (
    <ApprovalCard
      key={request.approvalId}
      request={request}
      onDecide={onDecide}
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
        <Text size="sm">
          {open.length} of {requests.length} wait for you; the answers go out together.
        </Text>
        <Button variant="default" onClick={approveAll}>
          Approve all
        </Button>
      </Group>
      {cards}
    </Stack>
  );
}

/** What a screen reader says when questions appear. */
export function announcement(requests: readonly ApprovalRequest[]): string {
  const open = requests.filter(({ answer }) => answer === undefined);
  if (open.length === 0) return "";
  const names = open.map(nameOf).join(", ");
  return open.length === 1
    ? `Approval needed: ${names}`
    : `${open.length} approvals needed: ${names}`;
}
