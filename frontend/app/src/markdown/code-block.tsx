import type { ElementContent } from "hast";
import { memo, type ReactNode, useMemo } from "react";
import { CopyButton } from "../components/copy-button.tsx";
import { lazyImport, useImportOnMount } from "../components/use-lazy-import.ts";

type Highlight = typeof import("./highlight.ts").highlight;

const highlighter = lazyImport(async () => (await import("./highlight.ts")).highlight);

/** Longer code is not highlighted. */
const MAX_LENGTH = 40_000;
/** A long streaming code is highlighted again after this number of characters. */
const STEP = 4_000;

function renderTree(nodes: readonly ElementContent[]): ReactNode {
  return nodes.map((node, index) => {
    if (node.type === "text") return node.value;
    if (node.type !== "element") return null;
    const { className } = node.properties;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of a code have no other identity.
      <span key={index} className={Array.isArray(className) ? className.join(" ") : undefined}>
        {renderTree(node.children)}
      </span>
    );
  });
}

interface TokensProps {
  readonly code: string;
  readonly language: string;
  readonly highlight: Highlight;
}

const Tokens = memo(function Tokens({ code, language, highlight }: TokensProps) {
  const tree = useMemo(() => highlight(code, language), [code, language, highlight]);
  return tree === undefined ? code : renderTree(tree.children as ElementContent[]);
});

/** The length of the start of a code that is highlighted; the rest has one color. */
function highlightedLength(code: string, isStreaming: boolean): number {
  if (!isStreaming || code.length < 2 * STEP) return code.length;
  return code.lastIndexOf("\n", code.length - (code.length % STEP)) + 1;
}

interface CodeProps {
  readonly code: string;
  readonly language: string;
  readonly isStreaming: boolean;
}

/** Code in the colors of its language, which are loaded when they are first needed. */
function Highlighted({ code, language, isStreaming }: CodeProps) {
  const highlight = useImportOnMount(highlighter);
  if (highlight === undefined || code.length > MAX_LENGTH) return code;
  const length = highlightedLength(code, isStreaming);
  return (
    <>
      <Tokens code={code.slice(0, length)} language={language} highlight={highlight} />
      {code.slice(length)}
    </>
  );
}

interface CodeBlockProps extends Omit<CodeProps, "isStreaming"> {
  readonly isStreaming?: boolean;
}

/** A code block that scrolls horizontally, with a copy button. */
export function CodeBlock({ code, language, isStreaming = false }: CodeBlockProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div
      className="code-block"
      role="group"
      aria-label={language === "" ? "Code" : `Code: ${language}`}
      dir="ltr"
    >
      <div className="code-header">
        <span className="text-xs dim mono">{language}</span>
        <CopyButton text={code} label="Copy code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a person scrolls it with the keyboard. */}
      <pre className="code" tabIndex={0}>
        <code>
          {language === "" ? (
            code
          ) : (
            <Highlighted code={code} language={language} isStreaming={isStreaming} />
          )}
        </code>
      </pre>
    </div>
  );
}
