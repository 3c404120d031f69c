import type { Root } from "hast";
import { common, createLowlight } from "lowlight";

const lowlight = createLowlight(common);

/** The tokens of a code; undefined for an unknown language. */
export function highlight(code: string, language: string): Root | undefined {
  return lowlight.registered(language) ? lowlight.highlight(language, code) : undefined;
}
