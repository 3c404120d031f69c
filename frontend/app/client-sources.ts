import { fileURLToPath } from "node:url";

const source = (path: string) => fileURLToPath(new URL(`../client/src/${path}`, import.meta.url));

/** Resolves the npm package `sluicegate` to its sources. */
export const CLIENT_SOURCES = {
  alias: [
    { find: /^sluicegate\/events$/, replacement: source("events/index.ts") },
    { find: /^sluicegate\/react$/, replacement: source("react/index.ts") },
    { find: /^sluicegate\/testing$/, replacement: source("testing/index.ts") },
    { find: /^sluicegate$/, replacement: source("index.ts") },
  ],
  // From its own folder, the client package would resolve another major of the AI SDK.
  dedupe: ["ai", "@ai-sdk/react", "react", "react-dom"],
};
