import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };

const PACKAGE = join(import.meta.dirname, "..");
const ROOT = join(PACKAGE, "../..");
const AI_7 = join(ROOT, "e2e/conformance/clients/ai-7/node_modules");
const DOCUMENTS = [
  "README.md",
  "frontend/client/README.md",
  "docs/how-to/page.md",
  "docs/how-to/record-and-replay.md",
  "docs/how-to/test-your-agent.md",
];

/** The TypeScript snippets of a document. */
function snippets(document: string): { language: string; code: string }[] {
  const text = readFileSync(join(ROOT, document), "utf8");
  return [...text.matchAll(/^```(tsx?)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
    language,
    code,
  }));
}

/** The source of each entry, as the published package exports it. */
function entryPaths(): Record<string, string[]> {
  const targets = Object.entries(manifest.exports).filter(
    ([, target]) => typeof target === "object",
  );
  return Object.fromEntries(
    targets.map(([name, target]) => {
      const { default: file } = target as { default: string };
      const source = file.replace("./dist/", "src/").replace(/\.js$/, ".ts");
      return [`sluicegate${name.slice(1)}`, [join(PACKAGE, source)]];
    }),
  );
}

test.each(DOCUMENTS)("the snippets of %s compile", (document) => {
  const folder = mkdtempSync(join(tmpdir(), "sluicegate-snippets-"));
  try {
    const files = snippets(document).map(({ language, code }, index) => {
      const file = `snippet-${index}.${language}`;
      writeFileSync(join(folder, file), `${code}export {};\n`);
      return file;
    });
    expect(files.length).toBeGreaterThan(0);
    const types = join(ROOT, "node_modules/@types");
    const options = {
      lib: ["es2023", "dom", "dom.iterable"],
      jsx: "react-jsx",
      types: [],
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: {
        ...entryPaths(),
        ai: [join(AI_7, "ai")],
        "@ai-sdk/react": [join(AI_7, "@ai-sdk/react")],
        react: [join(types, "react")],
        "react/jsx-runtime": [join(types, "react/jsx-runtime")],
        "@vitejs/plugin-react": [join(ROOT, "node_modules/@vitejs/plugin-react/dist/index.d.ts")],
        vite: [join(ROOT, "node_modules/vite/dist/node/index.d.ts")],
      },
    };
    const base = join(ROOT, "tsconfig.base.json");
    const config = { extends: base, compilerOptions: options, files };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8" });
  } catch (error) {
    throw new Error((error as { stdout?: string }).stdout ?? String(error));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
