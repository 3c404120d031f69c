import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "harness",
          include: ["{clients,harness}/**/*.test.ts", "goldens/reader.test.ts"],
        },
      },
      {
        test: {
          // Each story has a chat and a user of its own on servers that all of them share.
          name: "stories",
          include: ["stories/**/*.test.ts"],
          globalSetup: "harness/setup.ts",
          maxConcurrency: 12,
          isolate: false,
          testTimeout: 120_000,
        },
      },
    ],
  },
});
