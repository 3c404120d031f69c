import type { FootnoteDefinition, Nodes, RootContent } from "mdast";
import type { Block } from "./blocks.ts";
import { endOf, findNodes, parseMarkdown } from "./parse-markdown.ts";

/** The definitions of a text, which apply to all of its blocks. */
export interface Definitions {
  /** Equal for equal definitions. */
  readonly key: string;
  /** Markdown that defines the same labels; empty without definitions. */
  readonly prefix: string;
  readonly links: ReadonlyMap<string, { readonly url: string; readonly title: string }>;
  readonly hasFootnotes: boolean;
}

export const NO_DEFINITIONS: Definitions = {
  key: "",
  prefix: "",
  links: new Map(),
  hasFootnotes: false,
};

function rootsOf(blocks: readonly Block[]): readonly RootContent[] {
  return blocks.flatMap((block) =>
    block.kind === "node" && block.source.includes("]:") ? [block.node] : [],
  );
}

/** The definitions in blocks; `before` if they are equal. */
export function collectDefinitions(blocks: readonly Block[], before: Definitions): Definitions {
  const roots = rootsOf(blocks);
  if (roots.length === 0) return NO_DEFINITIONS;
  const links = new Map<string, { url: string; title: string }>();
  for (const { identifier, url, title } of roots.flatMap((root) => findNodes(root, "definition"))) {
    // The first definition of a label counts.
    if (!links.has(identifier)) links.set(identifier, { url, title: title ?? "" });
  }
  const notes = roots.flatMap((root) => findNodes(root, "footnoteDefinition"));
  const noteLines = notes.map(({ identifier }) => `[^${identifier}]: x\n\n`);
  const key = JSON.stringify([...links, noteLines]);
  if (key === before.key) return before;
  // A definition of a link ends the container of the footnote before it.
  const linkLines = [...links.keys(), "\uE000"].map((label) => `[${label}]: #\n`);
  const hasDefinitions = links.size + notes.length > 0;
  const prefix = hasDefinitions ? `${[...noteLines, ...linkLines].join("")}\n` : "";
  return { key, prefix, links, hasFootnotes: notes.length > 0 };
}

const resolved = new WeakMap<Block, { readonly prefix: string; readonly node: RootContent }>();

/** The node of a block whose references to the definitions of the text are resolved. */
export function resolveBlock(
  block: Extract<Block, { kind: "node" }>,
  { prefix }: Definitions,
): RootContent {
  const hasReferences = block.source.includes("[") && block.node.type !== "definition";
  if (prefix === "" || !hasReferences) return block.node;
  const known = resolved.get(block);
  if (known?.prefix === prefix) return known.node;
  const before = prefix + block.context;
  const nodes = parseMarkdown(before + block.source).children;
  const node = nodes.find((candidate) => endOf(candidate) > before.length);
  const result = node ?? block.node;
  resolved.set(block, { prefix, node: result });
  return result;
}

/** A footnote with its number; footnotes that are not referenced follow the others. */
export interface Footnote {
  readonly number: number;
  readonly definition: FootnoteDefinition;
  /** The tree that contains the first reference; undefined without one. */
  readonly firstReference: Nodes | undefined;
}

/** The footnotes of a text in the order of their first references. */
export function numberFootnotes(
  blocks: readonly Block[],
  definitions: Definitions,
): readonly Footnote[] {
  if (!definitions.hasFootnotes) return [];
  const roots = blocks.flatMap((block) =>
    block.kind === "node" && block.source.includes("[^") ? [resolveBlock(block, definitions)] : [],
  );
  const all = roots.flatMap((root) => findNodes(root, "footnoteDefinition"));
  const footnotes: Footnote[] = [];
  const add = (definition: FootnoteDefinition, firstReference: Nodes | undefined) => {
    if (footnotes.some((note) => note.definition === definition)) return;
    footnotes.push({ number: footnotes.length + 1, definition, firstReference });
    visit(definition);
  };
  const visit = (root: Nodes) => {
    for (const { identifier } of findNodes(root, "footnoteReference")) {
      const definition = all.find((note) => note.identifier === identifier);
      if (definition !== undefined) add(definition, root);
    }
  };
  for (const root of roots) if (root.type !== "footnoteDefinition") visit(root);
  for (const definition of all) add(definition, undefined);
  return footnotes;
}
