import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import reference from "../../api-docs/typedoc.json" with { type: "json" };
import manifest from "../package.json" with { type: "json" };
import { compileDeclarations, Declarations } from "../testing/declarations.ts";

const ENTRIES = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === "object" ? [{ name, types: target.types.replace("./dist/", "") }] : [],
);

let compiled: ReturnType<typeof compileDeclarations>;
beforeAll(() => {
  compiled = compileDeclarations();
});
afterAll(() => compiled.remove());

function exportedDeclarations(declarations: Declarations): Set<string> {
  const exported = ENTRIES.flatMap(({ types }) => [
    ...declarations.exportsOf(join(compiled.folder, types)).values(),
  ]);
  return new Set(exported);
}

test("every type that a public signature names is exported", () => {
  const declarations = new Declarations();
  const reached = exportedDeclarations(declarations);
  expect(reached.size).toBeGreaterThan(50);
  const missing = [...reached].flatMap((declaration) =>
    declarations
      .referencesOf(declaration)
      .filter((reference) => !reached.has(reference))
      .map((reference) => `${declaration.split("#")[1]} names ${reference.split("#")[1]}`),
  );
  expect(missing).toEqual([]);
});

test("every export has a doc comment", () => {
  const declarations = new Declarations();
  const missing = [...exportedDeclarations(declarations)]
    .filter((declaration) => !declarations.isDocumented(declaration))
    .map((declaration) => declaration.split("#")[1]);
  expect(missing).toEqual([]);
});

test("the API reference has a module for every entry", () => {
  const modules = reference.entryPoints.map((path) => {
    const source = readFileSync(join(import.meta.dirname, "../../api-docs", path), "utf8");
    const [, name] = /^ \* @module (\S+)$/m.exec(source) ?? [];
    return { name: name?.replace(/^sluicegate/, "."), types: path.slice("../client/src/".length) };
  });
  expect(modules).toEqual(
    ENTRIES.map(({ name, types }) => ({ name, types: types.replace(".d.ts", ".ts") })),
  );
});
