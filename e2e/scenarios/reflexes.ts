import type { Page } from "@playwright/test";

interface Reflex {
  /** A text of the card that contains the button, if one does. */
  readonly card?: string;
  /** The name of the button. */
  readonly button: string;
  /** How long after the arrival of the button it is clicked. */
  readonly milliseconds: number;
}

/**
 * Click a button some time after it arrives, in time of the page: a busy machine delays
 * the click and the guard of the button alike. Returns a function that waits for the click.
 */
export async function clickOnArrival(page: Page, reflex: Reflex): Promise<() => Promise<unknown>> {
  await page.evaluate(({ card: text, button: name, milliseconds }) => {
    delete document.body.dataset.clicked;
    const observer = new MutationObserver(() => {
      const cards = [...document.querySelectorAll("section[aria-label^='Approval']")];
      const root =
        text === undefined
          ? document.body
          : cards.find(({ textContent }) => textContent?.includes(text));
      const buttons = [...(root?.querySelectorAll("button") ?? [])];
      const button = buttons.find((button) => (button.ariaLabel ?? button.textContent) === name);
      if (button === undefined) return;
      observer.disconnect();
      setTimeout(() => {
        button.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 2 }));
        document.body.dataset.clicked = name;
      }, milliseconds);
    });
    const changes = { attributes: true, characterData: true, childList: true };
    observer.observe(document.body, { ...changes, subtree: true });
  }, reflex);
  return () => page.locator("body[data-clicked]").waitFor({ state: "attached" });
}
