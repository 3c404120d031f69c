import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** The maximum size of all scripts of the page, compressed. */
const MAX_BYTES = 360_000;

/** Fails the build if the scripts exceed the size limit. */
function checkSize(): Plugin {
  return {
    name: "sluicegate:check-size",
    // Builds in other modes, such as that of the bench, are not limited.
    apply: (_, { command, mode }) => command === "build" && mode === "production",
    generateBundle(_, bundle) {
      let bytes = 0;
      for (const file of Object.values(bundle)) {
        if (file.type === "chunk") bytes += gzipSync(file.code).length;
      }
      const message = `The scripts have ${bytes} bytes compressed; the limit is ${MAX_BYTES}.`;
      if (bytes > MAX_BYTES) this.error(message);
      else this.info(message);
    },
  };
}

/** Replaces the placeholders for the API and the nonce, as the server does. */
function replacePlaceholders(): Plugin {
  return {
    name: "sluicegate:replace-placeholders",
    apply: "serve",
    transformIndexHtml: (html) => html.replaceAll("{{api}}", "api").replaceAll("{{nonce}}", ""),
  };
}

const client = (path: string) => new URL(`../client/src/${path}`, import.meta.url).pathname;

export default defineConfig({
  // The page may be served below any path, so its asset URLs are relative.
  base: "./",
  plugins: [react(), checkSize(), replacePlaceholders()],
  resolve: {
    alias: [
      { find: /^sluicegate\/react$/, replacement: client("react/index.ts") },
      { find: /^sluicegate$/, replacement: client("index.ts") },
    ],
    // From its own folder, the client package would resolve another major of the AI SDK.
    dedupe: ["ai", "@ai-sdk/react", "react", "react-dom"],
  },
  // The server replaces it by a nonce for each response, for the styles of Mantine.
  html: { cspNonce: "{{nonce}}" },
  build: {
    target: "es2023",
    // The content security policy of the page does not permit `data:` scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
  server: {
    proxy: {
      "/api": { target: "http://127.0.0.1:8000", ws: true },
      "/suggestions.json": "http://127.0.0.1:8000",
    },
  },
});
