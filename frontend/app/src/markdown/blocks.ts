/** A text, split into blocks that can be parsed independently. */
interface Split {
  readonly text: string;
  readonly blocks: readonly string[];
}

const NOTHING: Split = { text: "", blocks: [] };
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const CONTINUES = /^(?: {2,}|\t| {0,1}(?:[-*+]|\d{1,9}[.)])(?:\s|$))/;
const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const FOOTNOTE = /^ {0,3}\[\^/m;
const DEFINITION = /^ {0,3}\[(?!\^)[^\]\n]+\]:.*$/gm;

function closes(line: string, fence: string): boolean {
  const end = FENCE.exec(line)?.[1];
  return end?.startsWith(fence) === true && line.trim() === end;
}

/** Split a text at blank lines between blocks; fences and lists are not split. */
function split(text: string): string[] {
  const blocks: string[] = [];
  let block = "";
  let isBlank = false;
  let fence = "";
  const close = () => {
    if (block.trim() !== "") blocks.push(block);
    block = "";
  };
  for (const line of text.match(/.*\n|.+$/g) ?? []) {
    const isEmpty = line.trim() === "";
    const isInList = LIST_ITEM.test(block) && CONTINUES.test(line);
    if (fence === "" && !isEmpty && isBlank && !isInList) close();
    const opening = FENCE.exec(line)?.[1];
    if (fence === "" && opening !== undefined && !isInList) {
      // A fence may follow a paragraph without a blank line.
      close();
      fence = opening;
      block = line;
    } else {
      block += line;
      if (fence !== "" && closes(line, fence)) {
        fence = "";
        close();
      }
    }
    isBlank = fence === "" && isEmpty;
  }
  close();
  return blocks;
}

/**
 * Split Markdown into blocks that can be parsed independently, so that only the last block of a
 * streaming text is parsed repeatedly. Blocks of `before` are reused if the text continues it.
 */
export function splitBlocks(text: string, before: Split = NOTHING): Split {
  if (text === before.text) return before;
  // Footnotes are numbered across the whole text.
  if (FOOTNOTE.test(text)) return { text, blocks: [text] };
  // The last block may continue, and an incomplete line may belong to the list before it.
  const [first, second] = before.blocks.slice(-2);
  if (first === undefined || second === undefined || !text.startsWith(before.text)) {
    return { text, blocks: split(text) };
  }
  const start = before.text.lastIndexOf(first, before.text.lastIndexOf(second) - 1);
  return { text, blocks: [...before.blocks.slice(0, -2), ...split(text.slice(start))] };
}

/** The link reference definitions of a text, which apply to all of its blocks. */
export function linkDefinitions(text: string): string {
  return text.includes("]:") ? (text.match(DEFINITION) ?? []).join("\n") : "";
}

/** The language and the code of a fenced block; undefined for any other block. */
export function parseFence(block: string): { language: string; code: string } | undefined {
  const fence = /^(`{3,}|~{3,})([^\n]*)(?:\n|$)/.exec(block);
  if (fence === null || fence[1] === undefined || fence[2]?.includes("`")) return undefined;
  const lines = block.slice(fence[0].length).split("\n");
  if (lines.at(-1) === "") lines.pop();
  if (closes(lines.at(-1) ?? "", fence[1])) lines.pop();
  return { language: fence[2]?.trim().split(/\s/)[0] ?? "", code: lines.join("\n") };
}
