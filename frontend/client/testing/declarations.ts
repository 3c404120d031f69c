import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseAst } from "rolldown/parseAst";

const PACKAGE = join(import.meta.dirname, "..");
const TSC = join(PACKAGE, "../../node_modules/.bin/tsc");

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A declaration, as `path#name`. */
type Declaration = string;

/** The declarations of a module, and where its other names come from. */
interface Module {
  readonly declared: ReadonlyMap<string, readonly Node[]>;
  readonly imported: ReadonlyMap<string, Declaration>;
  readonly exported: ReadonlyMap<string, Declaration>;
  /** The declared names with a doc comment. */
  readonly documented: ReadonlySet<string>;
}

/** Compile the declarations of the package; they are removed by `remove`. */
export function compileDeclarations(): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "sluicegate-types-"));
  const options = ["-p", "tsconfig.build.json", "--emitDeclarationOnly", "--outDir", folder];
  execFileSync(TSC, options, { cwd: PACKAGE, stdio: "inherit" });
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}

/** The declaration files of a package, with the names that each one declares, imports and exports. */
export class Declarations {
  readonly #modules = new Map<string, Module>();

  /** What an entry exports: the declaration of each name. */
  exportsOf(path: string): Map<string, Declaration> {
    const { exported } = this.#module(path);
    return new Map([...exported].map(([name, target]) => [name, this.#resolve(target)]));
  }

  /** The declarations in the package that the signature of a declaration names. */
  referencesOf(declaration: Declaration): Declaration[] {
    const [path = "", name = ""] = declaration.split("#");
    const module = this.#module(path);
    const names = new Set<string>();
    for (const node of module.declared.get(name) ?? []) collectNames(node, names);
    return [...names].flatMap((each) => {
      if (module.declared.has(each)) return [`${path}#${each}`];
      const target = module.imported.get(each);
      return target === undefined ? [] : [this.#resolve(target)];
    });
  }

  /** Whether a doc comment precedes a declaration. */
  isDocumented(declaration: Declaration): boolean {
    const [path = "", name = ""] = declaration.split("#");
    return this.#module(path).documented.has(name);
  }

  /** Follow exports of other modules to the declaration itself. */
  #resolve(declaration: Declaration): Declaration {
    const [path = "", name = ""] = declaration.split("#");
    const target = this.#module(path).exported.get(name);
    return target === undefined || target === declaration ? declaration : this.#resolve(target);
  }

  #module(path: string): Module {
    const module = this.#modules.get(path) ?? readModule(path);
    this.#modules.set(path, module);
    return module;
  }
}

/** A doc comment at the end of a text. */
const DOC_COMMENT = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/;

function nameOf(node: unknown): string {
  const { name, value } = node as { name?: string; value?: string };
  return name ?? value ?? "";
}

/** The file that a relative import resolves to; undefined for another package. */
function importedPath(path: string, source: unknown): string | undefined {
  const specifier = nameOf(source);
  if (!specifier.startsWith(".")) return undefined;
  return join(dirname(path), specifier.replace(/\.[jt]s$/, ".d.ts"));
}

function readModule(path: string): Module {
  const module = {
    declared: new Map<string, Node[]>(),
    imported: new Map<string, Declaration>(),
    exported: new Map<string, Declaration>(),
    documented: new Set<string>(),
  };
  const text = readFileSync(path, "utf8");
  const declare = (node: Node, isExported: boolean, hasComment: boolean) => {
    const names = node.type === "VariableDeclaration" ? (node.declarations as Node[]) : [node];
    for (const { id } of names) {
      const name = nameOf(id);
      module.declared.set(name, [...(module.declared.get(name) ?? []), node]);
      if (isExported) module.exported.set(name, `${path}#${name}`);
      if (hasComment) module.documented.add(name);
    }
  };
  const { body } = parseAst(text, { lang: "ts" }, path);
  for (const node of body as unknown as Node[]) {
    const hasComment = DOC_COMMENT.test(text.slice(0, node.start as number));
    const source = node.source ? importedPath(path, node.source) : path;
    const specifiers = (node.specifiers ?? []) as Node[];
    if (node.type === "ImportDeclaration") {
      for (const { imported, local } of specifiers) {
        if (source !== undefined)
          module.imported.set(nameOf(local), `${source}#${nameOf(imported)}`);
      }
    } else if (node.type === "ExportNamedDeclaration") {
      if (node.declaration) declare(node.declaration as Node, true, hasComment);
      for (const { local, exported } of specifiers) {
        if (source !== undefined)
          module.exported.set(nameOf(exported), `${source}#${nameOf(local)}`);
      }
    } else if (node.id || node.declarations) {
      declare(node, false, hasComment);
    }
  }
  return module;
}

/** Collect the names of types and values that a declaration refers to. */
function collectNames(node: unknown, names: Set<string>): void {
  if (Array.isArray(node)) for (const each of node) collectNames(each, names);
  if (typeof node !== "object" || node === null) return;
  const { type, typeName, exprName, expression } = node as Node;
  if (type === "TSTypeReference") names.add(rootName(typeName));
  if (type === "TSTypeQuery") names.add(rootName(exprName));
  if (type === "TSInterfaceHeritage" || type === "TSClassImplements") {
    names.add(rootName(expression));
  }
  if (type === "ClassDeclaration") names.add(rootName((node as Node).superClass));
  for (const value of Object.values(node)) collectNames(value, names);
}

/** The first name of `A.B.C`. */
function rootName(node: unknown): string {
  const { left } = (node ?? {}) as { left?: unknown };
  return left === undefined ? nameOf(node ?? {}) : rootName(left);
}
