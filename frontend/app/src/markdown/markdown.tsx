import { Anchor, Box, Code, Table, Title, Typography } from "@mantine/core";
import { memo, type ReactNode, useMemo, useRef } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import { cut, definitions, fenced } from "./blocks.ts";
import { CodeBlock } from "./code-block.tsx";
import { gfm } from "./gfm.ts";
import { isOwnPicture, safeLink } from "./own-files.ts";
import { Plain } from "./plain.tsx";
import { useRevealed } from "./revealed.ts";

/** A block beyond this many characters is shown as it was written. */
const LONGEST = 30_000;
/** The same while it grows, since it is read anew with each piece that comes in. */
const LONGEST_GROWING = 8_000;

const PLUGINS = [gfm];

function textOf(node: { children?: readonly unknown[]; value?: unknown } | undefined): string {
  if (node === undefined) return "";
  if (typeof node.value === "string") return node.value;
  return (node.children ?? []).map((child) => textOf(child as typeof node)).join("");
}

/** A heading of an answer stands below those of the page, however deep it was meant. */
function heading(size: "h3" | "h4" | "h5" | "h6") {
  return ({ children }: { readonly children?: ReactNode }) => (
    <Title order={3} size={size}>
      {children}
    </Title>
  );
}

const COMPONENTS: Components = {
  a({ href, children }) {
    const address = safeLink(href);
    if (address === undefined) return <span>{children}</span>;
    return (
      <Anchor href={address} title={address} target="_blank" rel="noopener noreferrer" inherit>
        {children}
      </Anchor>
    );
  },
  img({ src, alt }) {
    const address = typeof src === "string" ? src : undefined;
    if (address !== undefined && isOwnPicture(address)) {
      return <img className="picture" src={address} alt={alt ?? ""} />;
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
    <Box className="wide" role="group" aria-label="Table" tabIndex={0}>
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
  readonly isGrowing: boolean;
}

const Block = memo(function Block({ text, links, isGrowing }: BlockProps) {
  const code = fenced(text);
  if (code !== undefined) return <CodeBlock {...code} />;
  if (text.length > (isGrowing ? LONGEST_GROWING : LONGEST)) return <Plain text={text} />;
  return (
    <div className="block">
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {links !== "" && text.includes("[") ? `${text}\n\n${links}` : text}
      </ReactMarkdown>
    </div>
  );
});

/** Blocks that stand together in a group. */
const GROUP = 32;

interface GroupProps {
  readonly blocks: readonly string[];
  readonly links: string;
  /** Which of the blocks is growing, if one is. */
  readonly growing: number;
}

function isSame(one: GroupProps, other: GroupProps): boolean {
  return (
    one.links === other.links &&
    one.growing === other.growing &&
    one.blocks.length === other.blocks.length &&
    one.blocks.every((block, index) => block === other.blocks[index])
  );
}

/** Some blocks in a row: what a long text has had for a while is looked at group by group. */
const Group = memo(function Group({ blocks, links, growing }: GroupProps) {
  return blocks.map((block, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a block is its place in the text.
    <Block key={index} text={block} links={links} isGrowing={index === growing} />
  ));
}, isSame);

interface MarkdownProps {
  readonly text: string;
  /** Whether more of the text is coming. */
  readonly isGrowing?: boolean;
}

/** What a model has written, as Markdown; HTML in it stays text, and nothing is loaded from afar. */
export const Markdown = memo(function Markdown({ text: all, isGrowing = false }: MarkdownProps) {
  const text = useRevealed(all);
  const before = useRef<ReturnType<typeof cut>>(undefined);
  const { blocks } = useMemo(() => {
    before.current = cut(text, before.current);
    return before.current;
  }, [text]);
  const links = useMemo(() => definitions(text), [text]);
  return (
    <Typography className="markdown">
      {Array.from({ length: Math.ceil(blocks.length / GROUP) }, (_, index) => (
        <Group
          // biome-ignore lint/suspicious/noArrayIndexKey: a group is its place in the text.
          key={index}
          blocks={blocks.slice(index * GROUP, (index + 1) * GROUP)}
          links={links}
          growing={isGrowing || text !== all ? blocks.length - 1 - index * GROUP : -1}
        />
      ))}
    </Typography>
  );
});
