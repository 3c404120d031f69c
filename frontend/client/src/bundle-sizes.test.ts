import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Rolldown } from "vite";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };

const SOURCE = import.meta.dirname;
const PEERS = Object.keys(manifest.peerDependencies);

/** The limits in bytes, minified and compressed, of each entry with its static imports. */
const ENTRIES = [
  { entry: ".", file: "index.ts", limit: 3_000 },
  { entry: "./sse", file: "sse.ts", limit: 600 },
  { entry: "./websocket", file: "websocket.ts", limit: 600 },
  { entry: "./bidi", file: "bidi/index.ts", limit: 7_500 },
  { entry: "./voice", file: "audio/index.ts", limit: 2_000 },
  { entry: "./events", file: "events/index.ts", limit: 2_200 },
  { entry: "./react", file: "react/index.ts", limit: 9_000 },
  // The test kit: no page loads it.
  { entry: "./testing", file: "testing/index.ts", limit: 7_000 },
];

/** The chunks of a minified bundle of one file, without the peer dependencies. */
async function bundle(file: string): Promise<Rolldown.OutputChunk[]> {
  const result = await build({
    configFile: false,
    logLevel: "silent",
    build: {
      write: false,
      target: "es2023",
      modulePreload: false,
      assetsInlineLimit: 0,
      rolldownOptions: {
        input: join(SOURCE, file),
        external: (id) => PEERS.some((peer) => id === peer || id.startsWith(`${peer}/`)),
        preserveEntrySignatures: "strict",
        output: { format: "es", minify: true },
      },
    },
  });
  const { output } = result as Rolldown.RolldownOutput;
  return output.filter((item) => item.type === "chunk");
}

/** The code that is loaded with the entry. */
function loadedCode(chunks: readonly Rolldown.OutputChunk[]): string {
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of loaded) {
    for (const chunk of chunks) if (imports.includes(chunk.fileName)) loaded.add(chunk);
  }
  return [...loaded].map(({ code }) => code).join("");
}

test("there is a limit for every entry", () => {
  const entries = Object.keys(manifest.exports).filter((name) => name !== "./package.json");
  expect(ENTRIES.map(({ entry }) => entry)).toEqual(entries);
});

test.each(ENTRIES)("$entry has at most $limit bytes", async ({ file, limit }) => {
  const code = loadedCode(await bundle(file));
  expect(code).not.toBe("");
  expect(gzipSync(code).length).toBeLessThanOrEqual(limit);
});

test("the core with the SSE transport has at most 3,000 bytes", async () => {
  const files = ["index.ts", "sse.ts"];
  const bundles = await Promise.all(files.map((file) => bundle(file)));
  const sizes = bundles.map((chunks) => gzipSync(loadedCode(chunks)).length);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(3_000);
});

test("the hook loads the voice and the BIDI transport when they are first used", async () => {
  const chunks = await bundle("react/index.ts");
  const code = loadedCode(chunks);
  for (const name of ["getUserMedia", "sluicegate.live.v1"]) {
    expect(code).not.toContain(name);
    expect(chunks.some((chunk) => chunk.code.includes(name))).toBe(true);
  }
});
