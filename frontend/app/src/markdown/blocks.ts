import type { RootContent } from "mdast";
import { endOf, parseMarkdown, startOf } from "./parse-markdown.ts";

/** A longer block, except fenced code, is rendered as plain text. */
export const MAX_LENGTH = 20_000;
/** A longer last block is parsed again only after this number of further characters. */
const LARGE = 4_000;
const PARSE_INTERVAL = 2_000;
/** The number of characters that are parsed at once, unless a block is longer. */
const WINDOW = 8_000;

/** A block at the top level of a text. */
export type Block =
  | {
      readonly kind: "node";
      /** The text before the block without which it may be parsed differently; mostly empty. */
      readonly context: string;
      readonly source: string;
      readonly node: RootContent;
    }
  | {
      readonly kind: "code";
      readonly source: string;
      readonly language: string;
      readonly code: string;
    }
  | { readonly kind: "plain"; readonly source: string };

/** A text, split into its blocks. */
export interface ParsedText {
  readonly text: string;
  /** The blocks that no continuation of the text changes. */
  readonly finished: readonly Block[];
  /** The offset of the end of the finished blocks. */
  readonly finishedEnd: number;
  /** The blocks after them. */
  readonly open: readonly Block[];
  /** The offset of the end of the text that `open` contains. */
  readonly openEnd: number;
}

const EMPTY: ParsedText = { text: "", finished: [], finishedEnd: 0, open: [], openEnd: 0 };
const FENCE = /^(`{3,}(?=[^`\r\n]*(?:[\r\n]|$))|~{3,})[^\r\n]*(?:\r\n|\r|\n|$)/;
const LINE_ENDING = /\r\n|\r|\n/g;
const BLANK_LINES = /^(?:[ \t]*(?:\r\n|\r|\n))+/;

/** The end of the last complete line. A final `\r` may be the first half of a line ending. */
function endOfLines(text: string): number {
  const end = text.endsWith("\r") ? text.length - 1 : text.length;
  return Math.max(text.lastIndexOf("\n", end - 1), text.lastIndexOf("\r", end - 1)) + 1;
}

function startOfLine(text: string, offset: number): number {
  if (offset === 0) return 0;
  return Math.max(text.lastIndexOf("\n", offset - 1), text.lastIndexOf("\r", offset - 1)) + 1;
}

/** The block of fenced code at the start of a text, and its end; undefined if it is not closed. */
function parseFence(text: string): { block: Block; end: number | undefined } | undefined {
  const opening = FENCE.exec(text);
  const [line, marker] = [opening?.[0], opening?.[1]];
  if (opening === null || line === undefined || marker === undefined) return undefined;
  const close = new RegExp(
    `(?:^|[\\r\\n]) {0,3}${marker[0]}{${marker.length},}[ \\t]*(?=[\\r\\n]|$)`,
    "g",
  );
  close.lastIndex = Math.max(0, line.length - 1);
  const isOpeningComplete = /[\r\n]$/.test(line);
  const closing = isOpeningComplete ? close.exec(text) : null;
  const [node] = parseMarkdown(line).children;
  const language = (node?.type === "code" && node.lang) || "";
  const isClosed = closing !== null;
  const codeEnd = isClosed ? Math.max(line.length, closing.index) : text.length;
  const code = text.slice(line.length, codeEnd);
  const end = isClosed ? closing.index + closing[0].length : text.length;
  const block: Block = {
    kind: "code",
    source: text.slice(0, end),
    language,
    code: isClosed
      ? code.slice(0, text[closing.index] === "\n" && code.endsWith("\r") ? -1 : undefined)
      : code.replace(/(?:\r\n|\r|\n)$/, ""),
  };
  return { block, end: isClosed ? end : undefined };
}

/** The end of the first blank line after a length; undefined without one. */
function endOfLongBlock(text: string, length: number): number | undefined {
  const blank = /(?:\r\n|\n|\r(?!\n))[ \t]*(?:\r\n|\n|\r(?!\n))/g;
  blank.lastIndex = length;
  const found = blank.exec(text);
  return found === null ? undefined : found.index + found[0].length;
}

function isIndentedCode(text: string, node: RootContent): boolean {
  return node.type === "code" && !/[`~]/.test(text.charAt(startOf(node)));
}

/** Whether a node is parsed the same without the node before it. */
function isSeparate(text: string, before: RootContent, node: RootContent): boolean {
  const gap = text.slice(endOf(before), startOf(node));
  const followsBlankLine = (gap.match(LINE_ENDING) ?? []).length > 1;
  if (isIndentedCode(text, node)) return followsBlankLine && before.type !== "list";
  // Directly after another block, fewer lines start a list or HTML, an incomplete line may seem to
  // be that of a table, and later lines may complete the title of a definition.
  const isText = ["paragraph", "heading", "table"].includes(node.type);
  if (!followsBlankLine) return !isText && before.type !== "definition";
  // Indented code is still open after a blank line.
  return !isText || !isIndentedCode(text, before);
}

/** The index of the node up to an index that is parsed the same without those before it. */
function firstRelated(text: string, nodes: readonly RootContent[], index: number): number {
  const [before, node] = [nodes[index - 1], nodes[index]];
  if (before === undefined || node === undefined || isSeparate(text, before, node)) return index;
  return firstRelated(text, nodes, index - 1);
}

/** The index of the first node that a continuation of the text may change. */
function firstOpen(text: string, nodes: readonly RootContent[]): number {
  const lines = endOfLines(text);
  const last = nodes.findLastIndex((node) => startOf(node) < lines);
  return firstRelated(text, nodes, Math.max(0, last));
}

function toBlock(text: string, nodes: readonly RootContent[], index: number): Block {
  const node = nodes[index] as RootContent;
  const start = startOfLine(text, startOf(node));
  const source = text.slice(start, endOf(node));
  if (node.type === "code") {
    return { kind: "code", source, language: node.lang ?? "", code: node.value };
  }
  const first = nodes[firstRelated(text, nodes, index)] ?? node;
  return {
    kind: "node",
    context: text.slice(startOfLine(text, startOf(first)), start),
    source,
    node,
  };
}

/** One step of the split: blocks that are finished, where they end, and the blocks after them. */
interface Step {
  readonly finished: readonly Block[];
  readonly end: number;
  readonly open: readonly Block[];
}

/** The step of a text whose first block is too long to be parsed. */
function longStep(text: string): Step {
  const end = endOfLongBlock(text, MAX_LENGTH);
  const block: Block = { kind: "plain", source: text.slice(0, end) };
  return end === undefined
    ? { finished: [], end: 0, open: [block] }
    : { finished: [block], end, open: [] };
}

/** Parse the start of a text; `open` is empty if there is more to parse. */
function parseStart(text: string): Step {
  const fence = parseFence(text);
  if (fence !== undefined) {
    const { block, end } = fence;
    // A longer run of marks may still follow a closing fence on an incomplete line.
    const isFinished = end !== undefined && end < endOfLines(text);
    return isFinished
      ? { finished: [block], end, open: [] }
      : { finished: [], end: 0, open: [block] };
  }
  const isLongLine = text.length > MAX_LENGTH && !/[\r\n]/.test(text.slice(0, MAX_LENGTH));
  if (isLongLine) return longStep(text);
  for (let size = WINDOW; ; size *= 2) {
    const window = text.slice(0, Math.min(size, MAX_LENGTH));
    const isAll = window.length === text.length;
    const nodes = parseMarkdown(window).children;
    const index = firstOpen(window, nodes);
    const open = nodes[index];
    const blocks = nodes.map((_, position) => toBlock(window, nodes, position));
    const finished = blocks.slice(0, index);
    if (isAll) {
      const end = open === undefined || index === 0 ? 0 : startOfLine(window, startOf(open));
      return { finished, end, open: blocks.slice(index) };
    }
    if (index > 0 && open !== undefined) {
      return { finished, end: startOfLine(window, startOf(open)), open: [] };
    }
    if (size >= MAX_LENGTH) return longStep(text);
  }
}

/**
 * Split Markdown into blocks that can be parsed independently, at the offsets of the parser. The
 * finished blocks of `before` are kept if the text continues it, so that only the last block of a
 * streaming text is parsed repeatedly. With `isStreaming`, a large last block is not parsed for
 * each addition; the text after `openEnd` is to be rendered as it is.
 */
export function splitBlocks(
  text: string,
  before: ParsedText = EMPTY,
  { isStreaming = false }: { readonly isStreaming?: boolean } = {},
): ParsedText {
  if (text === before.text && before.openEnd === text.length) return before;
  const last = text.startsWith(before.text) ? before : EMPTY;
  const isLarge = last.openEnd - last.finishedEnd > LARGE;
  if (isStreaming && isLarge && text.length - last.openEnd < PARSE_INTERVAL) {
    const isCode = last.open.length === 1 && last.open[0]?.kind === "code";
    if (!isCode) return { ...last, text };
  }
  const finished = [...last.finished];
  let finishedEnd = last.finishedEnd;
  let isLong = last.open[0]?.kind === "plain";
  for (;;) {
    finishedEnd += BLANK_LINES.exec(text.slice(finishedEnd))?.[0].length ?? 0;
    const rest = text.slice(finishedEnd);
    const step = isLong ? longStep(rest) : parseStart(rest);
    isLong = false;
    finished.push(...step.finished);
    finishedEnd += step.end;
    if (step.open.length > 0 || step.end === 0) {
      return { text, finished, finishedEnd, open: step.open, openEnd: text.length };
    }
  }
}
