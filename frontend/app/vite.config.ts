import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type Rolldown } from "vite";
import { CLIENT_SOURCES } from "./client-sources.ts";

/**
 * The maximum sizes, compressed, of what is needed before a card can be answered: the entry and its
 * static imports.
 */
const MAX_BYTES = { js: 190_000, css: 15_000 };

/** The chunks that a chunk imports statically, and itself. */
function withStaticImports(entry: Rolldown.OutputChunk, bundle: Rolldown.OutputBundle) {
  const chunks = new Set([entry]);
  // A set also iterates over what is added meanwhile.
  for (const { imports } of chunks) {
    for (const name of imports) {
      const chunk = bundle[name];
      if (chunk?.type === "chunk") chunks.add(chunk);
    }
  }
  return [...chunks];
}

/** Fails the build if the entry and its static imports exceed the size limits. */
function checkSize(): Plugin {
  return {
    name: "sluicegate:check-size",
    // Builds in other modes, such as that of the bench, are not limited.
    apply: (_, { command, mode }) => command === "build" && mode === "production",
    generateBundle(_, bundle) {
      const entry = Object.values(bundle).find((file) => file.type === "chunk" && file.isEntry);
      if (entry?.type !== "chunk") return this.error("The build has no entry.");
      const chunks = withStaticImports(entry, bundle);
      const styles = new Set(
        chunks.flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]),
      );
      const sources = {
        js: chunks.map(({ code }) => code),
        css: [...styles].map((name) => {
          const file = bundle[name];
          return file?.type === "asset" ? String(file.source) : "";
        }),
      };
      for (const kind of ["js", "css"] as const) {
        const bytes = sources[kind].reduce((sum, source) => sum + gzipSync(source).length, 0);
        const message = `Before the first card: ${bytes} bytes of ${kind}, compressed; the limit is ${MAX_BYTES[kind]}.`;
        if (bytes > MAX_BYTES[kind]) this.error(message);
        else this.info(message);
      }
    },
  };
}

/** Writes each script and style in Brotli beside it: the server, which is Python, has gzip only. */
function packWithBrotli(): Plugin {
  return {
    name: "sluicegate:pack-with-brotli",
    apply: (_, { command, mode }) => command === "build" && mode === "production",
    async writeBundle({ dir = "" }, bundle) {
      const names = Object.keys(bundle).filter((name) => /\.(js|css)$/.test(name));
      const pack = async (name: string) => {
        const content = await promisify(brotliCompress)(await readFile(join(dir, name)));
        await writeFile(join(dir, `${name}.br`), content);
      };
      await Promise.all(names.map(pack));
    },
  };
}

/** Replaces the placeholders, as the server does without settings. */
function replacePlaceholders(): Plugin {
  const values: Record<string, string> = {
    api: "api",
    title: "sluicegate",
    logo: "./favicon.svg",
    theme: "{}",
  };
  return {
    name: "sluicegate:replace-placeholders",
    apply: "serve",
    transformIndexHtml: (html, { originalUrl = "/" }) => {
      // As the server does for `/inbox/{approvalId}`.
      const root = originalUrl.startsWith("/inbox/") ? "../" : "./";
      const page = html.replaceAll(/\{\{([a-z]+)\}\}/g, (_, name) => values[name] ?? "");
      return page.replaceAll('"./', `"${root}`).replace('content="api"', `content="${root}api"`);
    },
  };
}

export default defineConfig({
  // The page may be served below any path, so its asset URLs are relative.
  base: "./",
  plugins: [react(), checkSize(), packWithBrotli(), replacePlaceholders()],
  resolve: CLIENT_SOURCES,
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
    },
  },
});
