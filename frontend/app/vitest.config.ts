import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const client = (path: string) => fileURLToPath(new URL(`../client/src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^sluicegate\/events$/, replacement: client("events/index.ts") },
      { find: /^sluicegate\/react$/, replacement: client("react/index.ts") },
      { find: /^sluicegate\/testing$/, replacement: client("testing/index.ts") },
      { find: /^sluicegate$/, replacement: client("index.ts") },
    ],
    dedupe: ["ai", "@ai-sdk/react", "react", "react-dom"],
  },
  test: {
    maxWorkers: 2,
    // Only a defect reaches the limit, not a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      // Modules without components need no jsdom.
      { extends: true, test: { name: "app modules", include: ["{src,playground}/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "app",
          environment: "jsdom",
          include: ["{src,playground}/**/*.test.tsx"],
          setupFiles: ["testing/browser.ts"],
        },
      },
    ],
  },
});
