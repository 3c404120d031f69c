/**
 * A plugin of TypeDoc. The highlighter gives up on a line after half a second, so that what it writes
 * would depend on how busy the machine is; two builds of a release have the same bytes.
 */
import { Registry } from "@shikijs/vscode-textmate";

const loadGrammar = Registry.prototype.loadGrammarWithConfiguration;

Registry.prototype.loadGrammarWithConfiguration = function (...options) {
  const grammar = loadGrammar.apply(this, options);
  if (grammar === null) return null;
  const tokenize = grammar.tokenizeLine2.bind(grammar);
  grammar.tokenizeLine2 = (line, state) => tokenize(line, state);
  return grammar;
};

/** TypeDoc calls it; importing this file was enough. */
export function load() {}
