import { defineConfig } from "@playwright/test";
import config from "./playwright.config.ts";

/** Takes pictures of the page: of its states in build/pictures, and for the README. */
export default defineConfig({
  ...config,
  testMatch: "**/*.pictures.ts",
  projects: [{ name: "pictures" }],
});
