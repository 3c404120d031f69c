import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";

/** The accessibility violations of the current page, in both colour schemes. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const axe = new AxeBuilder({ page });
    // Only the colours depend on the scheme.
    if (colorScheme === "dark") axe.withRules("color-contrast");
    const { violations } = await axe.analyze();
    found.push(
      ...violations.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes.map((n) => n.html)}`),
    );
  }
  return found;
}
