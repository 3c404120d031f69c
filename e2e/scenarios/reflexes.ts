import type { Page } from "@playwright/test";

interface Reflex {
  /** A text of the card. */
  readonly card: string;
  /** The text of the button. */
  readonly button: string;
  /** How long after the arrival of the button it is clicked. */
  readonly milliseconds: number;
}

/**
 * Click a button of a card some time after it arrives, in time of the page: a busy machine delays
 * the click and the guard of the button alike. Returns a function that waits for the click.
 */
export async function clickOnArrival(page: Page, reflex: Reflex): Promise<() => Promise<unknown>> {
  await page.evaluate(({ card: text, button: name, milliseconds }) => {
    delete document.body.dataset.clicked;
    const observer = new MutationObserver(() => {
      const cards = [...document.querySelectorAll("section[aria-label^='Approval']")];
      const card = cards.find(({ textContent }) => textContent?.includes(text));
      const buttons = [...(card?.querySelectorAll("button") ?? [])];
      const button = buttons.find(({ textContent }) => textContent === name);
      if (button === undefined) return;
      observer.disconnect();
      setTimeout(() => {
        button.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 2 }));
        document.body.dataset.clicked = name;
      }, milliseconds);
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  }, reflex);
  return () => page.locator("body[data-clicked]").waitFor({ state: "attached" });
}
