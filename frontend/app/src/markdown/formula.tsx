import { createElement, memo, type ReactNode, useMemo } from "react";
import { lazyImport, useImportOnMount } from "../components/use-lazy-import.ts";

type ToMathMl = typeof import("./mathml.ts").toMathMl;

const mathMl = lazyImport(async () => (await import("./mathml.ts")).toMathMl);

/** The attributes that are rendered; styles, links and event handlers are not among them. */
const ATTRIBUTES = [
  ...["accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth", "display"],
  ...["displaystyle", "fence", "height", "linethickness", "lspace", "mathbackground", "mathcolor"],
  ...["mathsize", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rowlines"],
  ...["rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "voffset", "width"],
];
const ELEMENTS = new Set([
  ...["math", "menclose", "merror", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom"],
  ...["mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable"],
  ...["mtd", "mtext", "mtr", "mlabeledtr", "munder", "munderover", "mmultiscripts", "mprescripts"],
]);

function renderElement(element: Element, key: number): ReactNode {
  const name = element.localName;
  // The source of the formula is its accessible name already.
  if (name === "annotation") return null;
  const children = Array.from(element.childNodes, (child, index) =>
    child instanceof Element ? renderElement(child, index) : child.textContent,
  );
  if (name === "semantics") return children;
  if (!ELEMENTS.has(name)) return children;
  const attributes = ATTRIBUTES.filter((attribute) => element.hasAttribute(attribute));
  const props = attributes.map((attribute) => [attribute, element.getAttribute(attribute)]);
  return createElement(name, { key, ...Object.fromEntries(props) }, ...children);
}

function renderMathMl(toMathMl: ToMathMl, source: string, isDisplay: boolean): ReactNode {
  const markup = toMathMl(source, isDisplay);
  if (markup === undefined) return undefined;
  const { documentElement } = new DOMParser().parseFromString(markup, "application/xml");
  return documentElement.localName === "math" ? renderElement(documentElement, 0) : undefined;
}

interface FormulaProps {
  /** TeX without delimiters. */
  readonly source: string;
  readonly isDisplay: boolean;
}

/** A formula as MathML; its source until it can be rendered, and if it is not valid TeX. */
export const Formula = memo(function Formula({ source, isDisplay }: FormulaProps) {
  const toMathMl = useImportOnMount(mathMl);
  const rendered = useMemo(
    () => toMathMl && renderMathMl(toMathMl, source, isDisplay),
    [toMathMl, source, isDisplay],
  );
  const content = rendered ?? <code className="inline-code">{source}</code>;
  if (!isDisplay) return <span dir="ltr">{content}</span>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a person scrolls it with the keyboard.
    <span className="formula" role="group" aria-label="Formula" dir="ltr" tabIndex={0}>
      {content}
    </span>
  );
});
