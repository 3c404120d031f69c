import { onTestFinished } from "vitest";
import type { Branding } from "../src/branding.ts";

/** Write a theme into the page, as the server does, for the current test. */
export function setBranding(theme: { [Name in keyof Branding]?: Branding[Name] | null }): void {
  const meta = document.createElement("meta");
  meta.name = "sluicegate-page";
  meta.content = JSON.stringify(theme);
  document.head.append(meta);
  onTestFinished(() => meta.remove());
}
