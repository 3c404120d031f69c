import { defineConfig } from "@playwright/test";
import config from "./playwright.config.ts";

/** Runs what the README prints, with the installed wheel. */
export default defineConfig({
  ...config,
  testMatch: "**/*.documents.ts",
  projects: [{ name: "readme" }],
});
