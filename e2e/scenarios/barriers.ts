import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";

/** What keeps somebody out of the page as it stands, in light and in dark. */
export async function barriers(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const axe = new AxeBuilder({ page });
    // The second time nothing but colours can have changed.
    if (colorScheme === "dark") axe.withRules("color-contrast");
    const { violations } = await axe.analyze();
    found.push(
      ...violations.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes.map((n) => n.html)}`),
    );
  }
  return found;
}
