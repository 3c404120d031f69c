import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    maxWorkers: 2,
    name: "client",
    include: ["src/**/*.test.ts"],
  },
});
