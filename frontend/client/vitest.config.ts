import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** The hook under one major, which the hook imports by the names that an application uses. */
function hookWith(major: 6 | 7) {
  const modules = join(
    import.meta.dirname,
    major === 6 ? "../../node_modules" : "../../e2e/conformance/clients/ai-7/node_modules",
  );
  return {
    resolve: {
      alias: { ai: join(modules, "ai"), "@ai-sdk/react": join(modules, "@ai-sdk/react") },
    },
    test: {
      name: `react, ai ${major}`,
      environment: "jsdom",
      include: ["src/react/**/*.test.ts"],
      env: { AI_SDK_MAJOR: String(major) },
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
      hookWith(6),
      hookWith(7),
    ],
  },
});
