import type { ListItem, Nodes, Parent, PhrasingContent, RootContent, TableRow } from "mdast";
import { Fragment, type ReactNode } from "react";
import { isSafeImage, safeLink } from "../safe-urls.ts";
import { CodeBlock } from "./code-block.tsx";
import { Formula } from "./formula.tsx";
import type { Definitions, Footnote } from "./references.ts";

/** What the nodes of a block refer to. */
export interface RenderContext {
  readonly links: Definitions["links"];
  readonly footnotes: readonly Footnote[];
  /** A prefix for the ids of footnotes, unique in the page. */
  readonly idPrefix: string;
  /** The tree that is rendered. */
  readonly root: Nodes;
  /** The footnotes that the tree has referred to so far. */
  readonly seen: Set<Footnote>;
}

export function footnoteId(context: Pick<RenderContext, "idPrefix">, number: number): string {
  return `${context.idPrefix}-footnote-${number}`;
}

export function referenceId(context: Pick<RenderContext, "idPrefix">, number: number): string {
  return `${context.idPrefix}-reference-${number}`;
}

function renderLink(url: string | undefined, children: ReactNode): ReactNode {
  const safe = safeLink(url);
  if (safe === undefined) return <span>{children}</span>;
  return (
    <a href={safe} title={safe} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function renderImage(url: string | undefined, alt: string | null | undefined): ReactNode {
  if (url !== undefined && isSafeImage(url)) {
    return <img className="image" src={url} alt={alt ?? ""} />;
  }
  const name = `Image: ${alt || url || "without a name"}`;
  const safe = safeLink(url);
  return safe === undefined ? <span>{name}</span> : renderLink(safe, name);
}

function renderFootnoteReference(identifier: string, context: RenderContext): ReactNode {
  const footnote = context.footnotes.find((note) => note.definition.identifier === identifier);
  if (footnote === undefined) return `[^${identifier}]`;
  const isFirst = footnote.firstReference === context.root && !context.seen.has(footnote);
  context.seen.add(footnote);
  const { number } = footnote;
  return (
    <sup>
      <a
        href={`#${footnoteId(context, number)}`}
        id={isFirst ? referenceId(context, number) : undefined}
        aria-label={`Footnote ${number}`}
      >
        {number}
      </a>
    </sup>
  );
}

interface PhrasingParent extends Parent {
  readonly children: PhrasingContent[];
}

function renderChildren(node: PhrasingParent, context: RenderContext): ReactNode {
  return node.children.map((child, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a node is identified by its position.
    <Fragment key={index}>{renderPhrasing(child, context)}</Fragment>
  ));
}

/** Render the blocks of a container. */
export function renderBlocks(nodes: readonly RootContent[], context: RenderContext): ReactNode {
  return nodes.map((child, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a node is identified by its position.
    <Fragment key={index}>{renderNode(child, context)}</Fragment>
  ));
}

/** The blocks of an item; a paragraph of a tight list has no element of its own. */
function renderItem(item: ListItem, isLoose: boolean, context: RenderContext): ReactNode {
  return item.children.map((child, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a node is identified by its position.
    <Fragment key={index}>
      {child.type === "paragraph" && !isLoose
        ? renderChildren(child, context)
        : renderNode(child, context)}
    </Fragment>
  ));
}

function renderListItem(item: ListItem, isLoose: boolean, context: RenderContext): ReactNode {
  if (typeof item.checked !== "boolean") {
    return <li dir="auto">{renderItem(item, isLoose, context)}</li>;
  }
  return (
    <li dir="auto" className="task">
      <input
        type="checkbox"
        checked={item.checked}
        disabled
        readOnly
        aria-label={item.checked ? "Done" : "Not done"}
      />
      <div className="task-content">{renderItem(item, isLoose, context)}</div>
    </li>
  );
}

function renderList(node: Extract<Nodes, { type: "list" }>, context: RenderContext): ReactNode {
  const isLoose = node.spread === true || node.children.some((item) => item.spread === true);
  const items = node.children.map((item, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a node is identified by its position.
    <Fragment key={index}>{renderListItem(item, isLoose, context)}</Fragment>
  ));
  if (node.ordered !== true) return <ul dir="auto">{items}</ul>;
  return (
    <ol dir="auto" start={node.start ?? 1}>
      {items}
    </ol>
  );
}

interface RowProps {
  readonly row: TableRow;
  readonly isHeader: boolean;
  readonly align: readonly (string | null)[];
  readonly context: RenderContext;
}

function renderRow({ row, isHeader, align, context }: RowProps): ReactNode {
  const Cell = isHeader ? "th" : "td";
  return (
    <tr>
      {row.children.map((cell, index) => (
        <Cell
          // biome-ignore lint/suspicious/noArrayIndexKey: a cell is identified by its position.
          key={index}
          dir="auto"
          className={align[index] ? `align-${align[index]}` : undefined}
        >
          {renderChildren(cell, context)}
        </Cell>
      ))}
    </tr>
  );
}

function renderTable(node: Extract<Nodes, { type: "table" }>, context: RenderContext): ReactNode {
  const [header, ...rows] = node.children;
  const align = node.align ?? [];
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a person scrolls it with the keyboard.
    <div className="table-scroll" role="group" aria-label="Table" tabIndex={0} dir="auto">
      <table className="table">
        {header && <thead>{renderRow({ row: header, isHeader: true, align, context })}</thead>}
        {rows.length > 0 && (
          <tbody>
            {rows.map((row, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a row is identified by its position.
              <Fragment key={index}>{renderRow({ row, isHeader: false, align, context })}</Fragment>
            ))}
          </tbody>
        )}
      </table>
    </div>
  );
}

const HEADING_SIZES = ["large", "large", "medium", "small"] as const;

function renderPhrasing(node: PhrasingContent, context: RenderContext): ReactNode {
  switch (node.type) {
    case "text":
      return node.value;
    case "html":
      return node.value;
    case "break":
      return <br />;
    case "emphasis":
      return <em>{renderChildren(node, context)}</em>;
    case "strong":
      return <strong>{renderChildren(node, context)}</strong>;
    case "delete":
      return <del>{renderChildren(node, context)}</del>;
    case "inlineCode":
      return <code className="inline-code">{node.value}</code>;
    case "inlineMath":
      return <Formula source={node.value} isDisplay={node.isDisplay} />;
    case "link":
      return renderLink(node.url, renderChildren(node, context));
    case "linkReference":
      return renderLink(context.links.get(node.identifier)?.url, renderChildren(node, context));
    case "image":
      return renderImage(node.url, node.alt);
    case "imageReference":
      return renderImage(context.links.get(node.identifier)?.url, node.alt);
    case "footnoteReference":
      return renderFootnoteReference(node.identifier, context);
  }
}

/** Render a block of Markdown; HTML is rendered as text. */
export function renderNode(node: RootContent, context: RenderContext): ReactNode {
  switch (node.type) {
    case "paragraph":
      return <p dir="auto">{renderChildren(node, context)}</p>;
    case "heading":
      // All headings are below those of the page in the outline.
      return (
        <h3 dir="auto" className={`heading-${HEADING_SIZES[node.depth - 1] ?? "small"}`}>
          {renderChildren(node, context)}
        </h3>
      );
    case "thematicBreak":
      return <hr />;
    case "blockquote":
      return <blockquote dir="auto">{renderBlocks(node.children, context)}</blockquote>;
    case "list":
      return renderList(node, context);
    case "code":
      return <CodeBlock language={node.lang ?? ""} code={node.value} />;
    case "math":
      return <Formula source={node.value} isDisplay />;
    case "html":
      return (
        <p dir="auto" className="literal">
          {node.value}
        </p>
      );
    case "table":
      return renderTable(node, context);
    case "definition":
    case "footnoteDefinition":
    case "listItem":
    case "tableRow":
    case "tableCell":
    case "yaml":
      // Definitions are rendered where they are referenced, and the others by their parents.
      return null;
    default:
      return renderPhrasing(node, context);
  }
}
