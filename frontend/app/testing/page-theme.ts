import { onTestFinished } from "vitest";
import type { PageTheme } from "../src/page-theme.ts";

/** Write a theme into the page, as the server does, for the current test. */
export function setPageTheme(theme: { [Name in keyof PageTheme]?: PageTheme[Name] | null }): void {
  const meta = document.createElement("meta");
  meta.name = "sluicegate-page";
  meta.content = JSON.stringify(theme);
  document.head.append(meta);
  onTestFinished(() => meta.remove());
}
