import { join } from "node:path";
import { defineConfig } from "vitest/config";

const CLIENTS = join(import.meta.dirname, "../../e2e/conformance/clients");

/** A project that tests the hook with one version of the AI SDK. */
function reactProject(version: "6" | "6-floor" | "7" | "7-floor") {
  // The newest AI SDK 6 is hoisted to the root.
  const modules = version === "6" ? join(CLIENTS, "../../..") : join(CLIENTS, `ai-${version}`);
  const packagePath = (name: string) => join(modules, "node_modules", name);
  return {
    extends: true as const,
    resolve: { alias: { ai: packagePath("ai"), "@ai-sdk/react": packagePath("@ai-sdk/react") } },
    test: {
      name: `react, ai ${version}`,
      environment: "jsdom",
      // Setting up jsdom takes longer than the tests.
      isolate: false,
      setupFiles: ["testing/setup.ts"],
      include: ["src/react/**/*.test.ts"],
      env: { AI_SDK_MAJOR: version[0] ?? "" },
    },
  };
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    // Only a defect reaches the limit, not a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: "client",
          include: ["src/**/*.test.ts"],
          exclude: ["src/react/**"],
        },
      },
      reactProject("6"),
      reactProject("6-floor"),
      reactProject("7"),
      reactProject("7-floor"),
    ],
  },
});
