import { defineConfig } from "vitest/config";

/** The folder of other clients, in place of the newest of each major that are installed here. */
const CLIENTS = process.env.SLUICEGATE_CLIENTS;

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
        ...(CLIENTS && {
          resolve: {
            alias: [
              {
                find: /^\.\.\/clients\/(ai-[67])\/client\.ts$/,
                replacement: `${CLIENTS}/$1/client.ts`,
              },
            ],
          },
        }),
        test: {
          // All stories share the servers; each one has its own chat and user.
          name: "stories",
          include: ["stories/**/*.test.ts"],
          globalSetup: "harness/global-setup.ts",
          // The matrix plays few stories; the fewer of them share a busy machine, the sooner each ends.
          maxConcurrency: process.env.PART === "clients" ? 4 : 12,
          isolate: false,
          testTimeout: 300_000,
        },
      },
    ],
  },
});
