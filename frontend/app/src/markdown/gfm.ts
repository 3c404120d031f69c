import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm as syntax } from "micromark-extension-gfm";
import type { Options } from "react-markdown";

const PARSING = { micromarkExtensions: [syntax()], fromMarkdownExtensions: [gfmFromMarkdown()] };

/**
 * Tables, task lists, footnotes, bare links and strikethrough. The package `remark-gfm` makes all
 * of it anew for each text, and beside it what writes Markdown.
 */
export const gfm: NonNullable<Options["remarkPlugins"]>[number] = function () {
  Object.assign(this.data(), PARSING);
};
