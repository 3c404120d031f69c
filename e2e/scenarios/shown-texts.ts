import type { Locator, Page } from "@playwright/test";

/**
 * Observe texts of the thread. The function that is returned resolves to those that were shown, and
 * to those that were missing in a later rendering.
 */
export async function observeTexts(page: Page, texts: readonly string[]) {
  const observed = await page.getByRole("log").evaluateHandle((thread, texts) => {
    const seen = new Set<string>();
    const missing = new Set<string>();
    new MutationObserver(() => {
      for (const text of texts) {
        if (thread.textContent?.includes(text)) seen.add(text);
        else if (seen.has(text)) missing.add(text);
      }
    }).observe(thread, { characterData: true, childList: true, subtree: true });
    return { seen, missing };
  }, texts);
  return () => observed.evaluate(({ seen, missing }) => [[...seen], [...missing]]);
}

/** Observe an element. The function that is returned resolves to each text that it has shown since. */
export async function observeHistory(element: Locator): Promise<() => Promise<string[]>> {
  const observed = await element.evaluateHandle((element) => {
    const texts: string[] = [];
    new MutationObserver(() => texts.push(element.textContent ?? "")).observe(element, {
      characterData: true,
      childList: true,
      subtree: true,
    });
    return texts;
  });
  return () => observed.jsonValue();
}
