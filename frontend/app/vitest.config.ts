import { defineConfig } from "vitest/config";
import { CLIENT_SOURCES } from "./client-sources.ts";

export default defineConfig({
  resolve: CLIENT_SOURCES,
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
          setupFiles: ["testing/setup.ts"],
        },
      },
    ],
  },
});
