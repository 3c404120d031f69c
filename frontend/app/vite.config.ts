import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** What the scripts of the page may weigh altogether, compressed. */
const MOST_BYTES = 360_000;

/** Fails the build when the page has grown too heavy to be loaded quickly. */
function weighed(): Plugin {
  return {
    name: "sluicegate:weighed",
    // A build that is made to be looked into, with another mode, is as heavy as it likes.
    apply: (_, { command, mode }) => command === "build" && mode === "production",
    generateBundle(_, bundle) {
      let bytes = 0;
      for (const file of Object.values(bundle)) {
        if (file.type === "chunk") bytes += gzipSync(file.code).length;
      }
      const sentence = `The scripts weigh ${bytes} bytes compressed; ${MOST_BYTES} is the most.`;
      if (bytes > MOST_BYTES) this.error(sentence);
      else this.info(sentence);
    },
  };
}

/** Stands in for the server, which writes into the page where its API is and under which nonce. */
function served(): Plugin {
  return {
    name: "sluicegate:served",
    apply: "serve",
    transformIndexHtml: (html) => html.replaceAll("{{api}}", "api").replaceAll("{{nonce}}", ""),
  };
}

const client = (path: string) => new URL(`../client/src/${path}`, import.meta.url).pathname;

export default defineConfig({
  // The page may stand below any path, so it names its files relative to itself.
  base: "./",
  plugins: [react(), weighed(), served()],
  resolve: {
    alias: [
      { find: /^sluicegate\/react$/, replacement: client("react/index.ts") },
      { find: /^sluicegate$/, replacement: client("index.ts") },
    ],
    // The client package finds another major of the AI SDK from where it lies.
    dedupe: ["ai", "@ai-sdk/react", "react", "react-dom"],
  },
  // The server writes a nonce of its own into each answer, for the styles that Mantine makes.
  html: { cspNonce: "{{nonce}}" },
  build: {
    target: "es2023",
    // The policy of the page lets no `data:` scripts or styles in.
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
