import { join } from "node:path";
import { defineConfig } from "vitest/config";

const CLIENTS = join(import.meta.dirname, "../../e2e/conformance/clients");

/** The hook with one version of the AI SDK, which it imports by the names that a page uses. */
function hookWith(version: "6" | "6-floor" | "7" | "7-floor") {
  // The newest of AI SDK 6 is the one that the other packages share.
  const modules = version === "6" ? join(CLIENTS, "../../..") : join(CLIENTS, `ai-${version}`);
  const found = (name: string) => join(modules, "node_modules", name);
  return {
    resolve: { alias: { ai: found("ai"), "@ai-sdk/react": found("@ai-sdk/react") } },
    test: {
      name: `react, ai ${version}`,
      environment: "jsdom",
      // What takes longest is to set a page up.
      isolate: false,
      setupFiles: ["testing/react-setup.ts"],
      include: ["src/react/**/*.test.ts"],
      env: { AI_SDK_MAJOR: version[0] ?? "" },
    },
  };
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "client",
          include: ["src/**/*.test.ts"],
          exclude: ["src/react/**"],
        },
      },
      hookWith("6"),
      hookWith("6-floor"),
      hookWith("7"),
      hookWith("7-floor"),
    ],
  },
});
