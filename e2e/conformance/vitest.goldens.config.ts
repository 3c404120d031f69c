import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["goldens/record.test.ts"],
    globalSetup: "goldens/global-setup.ts",
    maxWorkers: 1,
    maxConcurrency: 4,
    testTimeout: 120_000,
  },
});
