import "../components/table.css";
import "./markdown.css";
import type { FootnoteDefinition, Nodes, RootContent } from "mdast";
import { memo, useId, useMemo, useRef } from "react";
import { type Block, type ParsedText, splitBlocks } from "./blocks.ts";
import { CodeBlock } from "./code-block.tsx";
import { PlainText } from "./plain-text.tsx";
import {
  collectDefinitions,
  type Definitions,
  type Footnote,
  NO_DEFINITIONS,
  numberFootnotes,
  resolveBlock,
} from "./references.ts";
import {
  footnoteId,
  type RenderContext,
  referenceId,
  renderBlocks,
  renderNode,
} from "./render-node.tsx";
import { useGradualText } from "./use-gradual-text.ts";

const NO_FOOTNOTES: readonly Footnote[] = [];

/** What the blocks of a text share. */
interface References {
  readonly definitions: Definitions;
  readonly footnotes: readonly Footnote[];
  readonly idPrefix: string;
}

function contextOf(references: References, root: Nodes): RenderContext {
  const { definitions, footnotes, idPrefix } = references;
  return { links: definitions.links, footnotes, idPrefix, root, seen: new Set() };
}

function renderBlock(block: Block, references: References, isStreaming: boolean) {
  if (block.kind === "plain") return <PlainText text={block.source} />;
  if (block.kind === "code") {
    return <CodeBlock code={block.code} language={block.language} isStreaming={isStreaming} />;
  }
  const node: RootContent = resolveBlock(block, references.definitions);
  // Definitions are rendered where they are referenced.
  if (node.type === "definition" || node.type === "footnoteDefinition") return null;
  return <div className="block">{renderNode(node, contextOf(references, node))}</div>;
}

interface BlockProps {
  readonly block: Block;
  readonly references: References;
  readonly isStreaming: boolean;
}

function isSameBlock(one: BlockProps, other: BlockProps): boolean {
  const { block, references: before, isStreaming } = one;
  if (block !== other.block || isStreaming !== other.isStreaming) return false;
  if (block.kind !== "node" || !block.source.includes("[")) return true;
  const { references: after } = other;
  return before.definitions === after.definitions && before.footnotes === after.footnotes;
}

const RenderedBlock = memo(function RenderedBlock(props: BlockProps) {
  return renderBlock(props.block, props.references, props.isStreaming);
}, isSameBlock);

/** The number of blocks in a group. */
const GROUP_SIZE = 32;

interface BlockGroupProps {
  readonly blocks: readonly Block[];
  readonly references: References;
  /** The index of the streaming block; it may be outside of the group. */
  readonly streamingIndex: number;
}

function isSameGroup(one: BlockGroupProps, other: BlockGroupProps): boolean {
  const isStreaming = ({ blocks, streamingIndex }: BlockGroupProps) =>
    streamingIndex >= 0 && streamingIndex < blocks.length;
  return (
    one.references === other.references &&
    !isStreaming(one) &&
    !isStreaming(other) &&
    one.blocks.length === other.blocks.length &&
    one.blocks.every((block, index) => block === other.blocks[index])
  );
}

/** Consecutive blocks; finished blocks of a long text are compared by group, not one by one. */
const BlockGroup = memo(function BlockGroup(props: BlockGroupProps) {
  return props.blocks.map((block, index) => (
    <RenderedBlock
      // biome-ignore lint/suspicious/noArrayIndexKey: a block is identified by its position.
      key={index}
      block={block}
      references={props.references}
      isStreaming={index === props.streamingIndex}
    />
  ));
}, isSameGroup);

interface FootnoteProps {
  readonly footnote: Footnote;
  readonly references: References;
}

function FootnoteItem({ footnote, references }: FootnoteProps) {
  const { number, firstReference } = footnote;
  const definition: FootnoteDefinition = footnote.definition;
  const context = contextOf(references, definition);
  return (
    <li dir="auto" id={footnoteId(references, number)}>
      {renderBlocks(definition.children, context)}
      {firstReference !== undefined && (
        <a href={`#${referenceId(references, number)}`} aria-label={`Back to reference ${number}`}>
          ↩
        </a>
      )}
    </li>
  );
}

function Footnotes({ references }: { readonly references: References }) {
  if (references.footnotes.length === 0) return null;
  return (
    <section className="block footnotes" aria-label="Footnotes">
      <ol>
        {references.footnotes.map((footnote) => (
          <FootnoteItem key={footnote.number} footnote={footnote} references={references} />
        ))}
      </ol>
    </section>
  );
}

/** The blocks of a text that grows, with what they share. */
function useBlocks(text: string, isStreaming: boolean) {
  const parsed = useRef<ParsedText>(undefined);
  const definitions = useRef(NO_DEFINITIONS);
  const footnotes = useRef(NO_FOOTNOTES);
  const id = useId();
  return useMemo(() => {
    const split = splitBlocks(text, parsed.current, { isStreaming });
    parsed.current = split;
    const blocks = [...split.finished, ...split.open];
    definitions.current = collectDefinitions(blocks, definitions.current);
    const numbered = numberFootnotes(blocks, definitions.current);
    footnotes.current = numbered.length === 0 ? NO_FOOTNOTES : numbered;
    return {
      blocks,
      rest: text.slice(split.openEnd),
      definitions: definitions.current,
      footnotes: footnotes.current,
      idPrefix: id.replaceAll(/[^\w-]/g, ""),
    };
  }, [text, isStreaming, id]);
}

interface MarkdownProps {
  readonly text: string;
  /** Whether the text is streaming. */
  readonly isStreaming?: boolean;
}

/** Text of a model as Markdown; HTML is rendered as text, and nothing is loaded from other hosts. */
export const Markdown = memo(function Markdown(props: MarkdownProps) {
  const text = useGradualText(props.text);
  const isStreaming = props.isStreaming === true || text !== props.text;
  const { blocks, rest, definitions, footnotes, idPrefix } = useBlocks(text, isStreaming);
  const references = useMemo(
    () => ({ definitions, footnotes, idPrefix }),
    [definitions, footnotes, idPrefix],
  );
  return (
    <div className="markdown">
      {Array.from({ length: Math.ceil(blocks.length / GROUP_SIZE) }, (_, index) => (
        <BlockGroup
          // biome-ignore lint/suspicious/noArrayIndexKey: a group is identified by its position.
          key={index}
          blocks={blocks.slice(index * GROUP_SIZE, (index + 1) * GROUP_SIZE)}
          references={references}
          streamingIndex={isStreaming ? blocks.length - 1 - index * GROUP_SIZE : -1}
        />
      ))}
      {rest !== "" && <PlainText text={rest} />}
      <Footnotes references={references} />
    </div>
  );
});
