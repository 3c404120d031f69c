import { Anchor, Box, Code, Group, Paper, Table, Text, Title, Typography } from "@mantine/core";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm as gfmSyntax } from "micromark-extension-gfm";
import { memo, type ReactNode, useMemo, useRef } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import { CopyButton } from "../components/copy-button.tsx";
import { linkDefinitions, parseFence, splitBlocks } from "./blocks.ts";
import { PlainText } from "./plain-text.tsx";
import { isSafeImage, safeLink } from "./safe-urls.ts";
import { useRevealedText } from "./use-revealed-text.ts";

/** A block with more characters is rendered as plain text. */
const MAX_LENGTH = 30_000;
/** The limit while the block is streaming, since it is parsed again for each chunk. */
const MAX_STREAMING_LENGTH = 8_000;

const GFM_EXTENSIONS = {
  micromarkExtensions: [gfmSyntax()],
  fromMarkdownExtensions: [gfmFromMarkdown()],
};

/**
 * Tables, task lists, footnotes, autolinks and strikethrough. The package `remark-gfm` creates its
 * extensions for each text, and also includes a serializer.
 */
const gfm: NonNullable<Options["remarkPlugins"]>[number] = function () {
  Object.assign(this.data(), GFM_EXTENSIONS);
};

const PLUGINS = [gfm];

interface CodeBlockProps {
  readonly language: string;
  readonly code: string;
}

/** A code block that scrolls horizontally, with a copy button. */
function CodeBlock({ language, code }: CodeBlockProps) {
  return (
    <Paper withBorder role="group" aria-label={language === "" ? "Code" : `Code: ${language}`}>
      <Group justify="space-between" px="sm" py={4}>
        <Text size="xs" c="dimmed" ff="monospace">
          {language}
        </Text>
        <CopyButton text={code} label="Copy code" />
      </Group>
      <Box component="pre" className="code" ff="monospace" fz="sm" px="sm" pb="sm" tabIndex={0}>
        <code>{code}</code>
      </Box>
    </Paper>
  );
}

function textOf(node: { children?: readonly unknown[]; value?: unknown } | undefined): string {
  if (node === undefined) return "";
  if (typeof node.value === "string") return node.value;
  return (node.children ?? []).map((child) => textOf(child as typeof node)).join("");
}

/** A heading of an answer; all are below the page's headings in the outline. */
function heading(size: "h3" | "h4" | "h5" | "h6") {
  return ({ children }: { readonly children?: ReactNode }) => (
    <Title order={3} size={size}>
      {children}
    </Title>
  );
}

const COMPONENTS: Components = {
  a({ href, children }) {
    const url = safeLink(href);
    if (url === undefined) return <span>{children}</span>;
    return (
      <Anchor href={url} title={url} target="_blank" rel="noopener noreferrer" inherit>
        {children}
      </Anchor>
    );
  },
  img({ src, alt }) {
    const address = typeof src === "string" ? src : undefined;
    if (address !== undefined && isSafeImage(address)) {
      return <img className="image" src={address} alt={alt ?? ""} />;
    }
    const link = safeLink(address);
    const name = `Image: ${alt || address || "without a name"}`;
    if (link === undefined) return <span>{name}</span>;
    return (
      <Anchor href={link} target="_blank" rel="noopener noreferrer" inherit>
        {name}
      </Anchor>
    );
  },
  pre({ node }) {
    const code = node?.children[0];
    const classes = code?.type === "element" ? code.properties.className : undefined;
    const language = Array.isArray(classes) ? String(classes[0]).replace("language-", "") : "";
    return <CodeBlock language={language} code={textOf(node).replace(/\n$/, "")} />;
  },
  code: ({ children }) => <Code>{children}</Code>,
  table: ({ children }) => (
    <Box className="table-scroll" role="group" aria-label="Table" tabIndex={0}>
      <Table withTableBorder withColumnBorders>
        {children}
      </Table>
    </Box>
  ),
  h1: heading("h3"),
  h2: heading("h4"),
  h3: heading("h5"),
  h4: heading("h6"),
  h5: heading("h6"),
  h6: heading("h6"),
};

interface BlockProps {
  readonly text: string;
  readonly links: string;
  readonly isStreaming: boolean;
}

const Block = memo(function Block({ text, links, isStreaming }: BlockProps) {
  const code = parseFence(text);
  if (code !== undefined) return <CodeBlock {...code} />;
  if (text.length > (isStreaming ? MAX_STREAMING_LENGTH : MAX_LENGTH))
    return <PlainText text={text} />;
  return (
    <div className="block">
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {links !== "" && text.includes("[") ? `${text}\n\n${links}` : text}
      </ReactMarkdown>
    </div>
  );
});

/** The number of blocks in a group. */
const GROUP_SIZE = 32;

interface BlockGroupProps {
  readonly blocks: readonly string[];
  readonly links: string;
  /** The index of the streaming block; -1 without one. */
  readonly streamingIndex: number;
}

function isSame(one: BlockGroupProps, other: BlockGroupProps): boolean {
  return (
    one.links === other.links &&
    one.streamingIndex === other.streamingIndex &&
    one.blocks.length === other.blocks.length &&
    one.blocks.every((block, index) => block === other.blocks[index])
  );
}

/** Consecutive blocks; finished blocks of a long text are compared by group, not one by one. */
const BlockGroup = memo(function BlockGroup({ blocks, links, streamingIndex }: BlockGroupProps) {
  return blocks.map((block, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a block is identified by its position.
    <Block key={index} text={block} links={links} isStreaming={index === streamingIndex} />
  ));
}, isSame);

interface MarkdownProps {
  readonly text: string;
  /** Whether the text is streaming. */
  readonly isStreaming?: boolean;
}

/** Text of a model as Markdown; HTML is rendered as text, and nothing is loaded from other hosts. */
export const Markdown = memo(function Markdown({
  text: fullText,
  isStreaming = false,
}: MarkdownProps) {
  const text = useRevealedText(fullText);
  const before = useRef<ReturnType<typeof splitBlocks>>(undefined);
  const { blocks } = useMemo(() => {
    before.current = splitBlocks(text, before.current);
    return before.current;
  }, [text]);
  const links = useMemo(() => linkDefinitions(text), [text]);
  return (
    <Typography className="markdown">
      {Array.from({ length: Math.ceil(blocks.length / GROUP_SIZE) }, (_, index) => (
        <BlockGroup
          // biome-ignore lint/suspicious/noArrayIndexKey: a group is identified by its position.
          key={index}
          blocks={blocks.slice(index * GROUP_SIZE, (index + 1) * GROUP_SIZE)}
          links={links}
          streamingIndex={
            isStreaming || text !== fullText ? blocks.length - 1 - index * GROUP_SIZE : -1
          }
        />
      ))}
    </Typography>
  );
});
