import katex from "katex";

/** Longer formulas are not rendered. */
const MAX_LENGTH = 5_000;

/** A formula in TeX as the markup of MathML; undefined if it is not valid. */
export function toMathMl(source: string, displayMode: boolean): string | undefined {
  if (source.length > MAX_LENGTH) return undefined;
  try {
    const options = { displayMode, maxExpand: 500, maxSize: 20, output: "mathml" as const };
    const markup = katex.renderToString(source, { ...options, strict: "ignore", trust: false });
    // The content security policy does not permit style attributes; quotes in texts are escaped.
    return /<math[\s\S]*<\/math>/.exec(markup)?.[0].replaceAll(/ style="[^"]*"/g, "");
  } catch {
    return undefined;
  }
}
