import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    maxWorkers: 2,
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          name: "harness",
          // Only a defect reaches the limit, not a busy machine.
          testTimeout: 120_000,
          include: ["{clients,harness}/**/*.test.ts", "goldens/reader.test.ts"],
        },
      },
      {
        test: {
          // All stories share the servers; each one has its own chat and user.
          name: "stories",
          include: ["stories/**/*.test.ts"],
          globalSetup: "harness/global-setup.ts",
          maxConcurrency: 12,
          isolate: false,
          testTimeout: 300_000,
        },
      },
    ],
  },
});
