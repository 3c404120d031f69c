import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const client = (path: string) => new URL(`../client/src/${path}`, import.meta.url).pathname;

/** The playground of the documentation: the page with recordings in place of a server. */
export default defineConfig({
  root: "playground",
  publicDir: "../public",
  base: "./",
  plugins: [react()],
  resolve: {
    alias: [
      { find: /^sluicegate\/react$/, replacement: client("react/index.ts") },
      { find: /^sluicegate\/testing$/, replacement: client("testing/index.ts") },
      { find: /^sluicegate$/, replacement: client("index.ts") },
    ],
    dedupe: ["ai", "@ai-sdk/react", "react", "react-dom"],
  },
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
});
