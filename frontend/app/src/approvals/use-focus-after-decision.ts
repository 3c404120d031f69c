import { useEffect, useRef } from "react";
import { moveFocus } from "../components/reflex-guard.ts";

/** The card or the row of a call. */
function byCall(toolCallId: string): HTMLElement | null {
  const elements = document.querySelectorAll<HTMLElement>("[data-tool-call-id]");
  return [...elements].find(({ dataset }) => dataset.toolCallId === toolCallId) ?? null;
}

/** The first open card after an element, else the first one at all. */
function nextOpenCard(after: HTMLElement | null): HTMLElement | undefined {
  const cards = [...document.querySelectorAll<HTMLElement>("[data-approval][data-open]")].filter(
    (card) => !card.hidden,
  );
  const isLater = (card: HTMLElement) =>
    after !== null &&
    (after.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  return cards.find(isLater) ?? cards[0];
}

/**
 * Moves the focus from a decided card to the next one, else to the row of its call. Focus that was
 * lost to the page body moves likewise, or back to a card that is still open.
 */
export function useFocusAfterDecision(): void {
  const lastCall = useRef<string>(undefined);
  useEffect(() => {
    const record = ({ target }: FocusEvent) => {
      const element = (target as Element).closest<HTMLElement>("[data-tool-call-id]");
      lastCall.current = element?.dataset.toolCallId;
    };
    document.addEventListener("focusin", record);
    return () => document.removeEventListener("focusin", record);
  }, []);
  useEffect(() => {
    const { activeElement } = document;
    if (lastCall.current === undefined) return;
    const element = byCall(lastCall.current);
    const isOpen = element?.dataset.open !== undefined;
    const isLost = activeElement === null || activeElement === document.body;
    const isOnDecided = element !== null && element === activeElement && !isOpen;
    if (!isLost && !isOnDecided) return;
    const next = isOpen ? element : nextOpenCard(element);
    if (next) moveFocus(next);
    else if (isLost && element !== null) moveFocus(element);
  });
}
