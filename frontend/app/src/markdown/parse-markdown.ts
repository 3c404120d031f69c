import type { Nodes, Root, RootContent } from "mdast";
import { fromMarkdown, type Options } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { mathFromMarkdown, mathSyntax } from "./math-syntax.ts";

const OPTIONS: Options = {
  extensions: [gfm(), mathSyntax],
  mdastExtensions: [gfmFromMarkdown(), mathFromMarkdown],
};

/** Parse Markdown with tables, task lists, footnotes, autolinks, strikethrough and formulas. */
export function parseMarkdown(text: string): Root {
  // The parser removes a byte order mark at the start, which would shift the offsets.
  return fromMarkdown(`\uFEFF${text}`, OPTIONS);
}

export function startOf(node: RootContent): number {
  return node.position?.start.offset ?? 0;
}

export function endOf(node: RootContent): number {
  return node.position?.end.offset ?? 0;
}

/** The nodes of a type in a tree, in the order of the text. */
export function findNodes<Type extends Nodes["type"]>(
  root: Nodes,
  type: Type,
): Extract<Nodes, { type: Type }>[] {
  const found: Extract<Nodes, { type: Type }>[] = [];
  const visit = (node: Nodes) => {
    if (node.type === type) found.push(node as Extract<Nodes, { type: Type }>);
    if ("children" in node) node.children.forEach(visit);
  };
  visit(root);
  return found;
}
