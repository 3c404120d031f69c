import { type Kit, kits, type SocketTransport, type Version } from "./kit.ts";
import { CLIENT_TOOLS } from "./messages.ts";
import {
  either,
  makeSafeRule,
  type Predicate,
  s2BidiLiteral,
  s2Corrected,
  s2SseLiteral,
} from "./predicates.ts";
import type { Release } from "./rules.ts";
import { STYLES, type Style } from "./servers.ts";

/** A send-automatically rule by its name. */
export type Rule = "stock" | "stock+tool-calls" | "safe" | "s2" | "s2-sse" | "s2-bidi";

export interface Combination {
  readonly version: Version;
  readonly release: Release;
  readonly style: Style;
  readonly rule: Rule;
  /** A transport over a socket in place of the one over HTTP. */
  readonly transport?: SocketTransport;
}

const RELEASES: readonly Release[] = ["deferred", "preview", "progressive"];
const MAJORS: readonly Version[] = ["7", "6"];
const STOCK_RULES: readonly Rule[] = ["stock", "stock+tool-calls"];
const S2_RULES: readonly Rule[] = ["s2", "s2-sse"];

/**
 * A rule for one chat. The stock rules are the client's own code, so each version brings its own;
 * the safe one remembers what was sent.
 */
export function predicate(rule: Rule, kit: Kit): Predicate {
  const named: Record<Rule, () => Predicate> = {
    stock: () => kit.stock,
    "stock+tool-calls": () => either(kit.stock, kit.toolCalls),
    safe: () => makeSafeRule({ clientTools: [...CLIENT_TOOLS] }),
    s2: () => s2Corrected,
    "s2-sse": () => s2SseLiteral,
    "s2-bidi": () => s2BidiLiteral,
  };
  return named[rule]();
}

export function nameOf({ version, release, style, rule, transport }: Combination): string {
  // First, where the report does not cut it off.
  const over = transport === undefined ? "" : `${transport}, `;
  return `${over}${release}, ${style}, ai ${version}, ${rule}`;
}

function combine(releases: readonly Release[], rules: readonly Rule[]): Combination[] {
  return releases.flatMap((release) =>
    STYLES.flatMap((style) =>
      MAJORS.flatMap((version) => rules.map((rule) => ({ version, release, style, rule }))),
    ),
  );
}

/** What the socket changes is below releases and styles, so one style and the stock rules will do. */
function overSockets(rules: readonly Rule[]): Combination[] {
  return combine(["deferred", "progressive"], rules)
    .filter(({ version, style }) => version === "7" && style === "call")
    .map((combination) => ({ ...combination, transport: "websocket" }));
}

const BIDI = { style: "call", transport: "bidi" } as const;

/** The client's own socket transport: each major under each of both releases, and each stock rule. */
const OVER_BIDI: readonly Combination[] = [
  { ...BIDI, version: "7", release: "deferred", rule: "stock+tool-calls" },
  { ...BIDI, version: "7", release: "progressive", rule: "stock" },
  { ...BIDI, version: "6", release: "deferred", rule: "stock" },
  { ...BIDI, version: "6", release: "progressive", rule: "stock+tool-calls" },
];

const LIVE = { style: "call", transport: "live" } as const;

/** The same transport on the socket on which a chat may also be spoken. */
export const OVER_LIVE: readonly Combination[] = [
  { ...LIVE, version: "7", release: "deferred", rule: "stock+tool-calls" },
  { ...LIVE, version: "6", release: "progressive", rule: "stock" },
];

/** The client's own rule, which sends for pages and people alike: every release and style once. */
const SAFE: readonly Combination[] = [
  { version: "7", release: "preview", style: "call", rule: "safe" },
  { version: "7", release: "deferred", style: "confirmation", rule: "safe" },
  { version: "6", release: "progressive", style: "call", rule: "safe" },
  { version: "6", release: "deferred", style: "confirmation", rule: "safe" },
];

/** Every supported combination, and the oldest supported clients under each release. */
export const EVERYWHERE: readonly Combination[] = [
  ...combine(RELEASES, STOCK_RULES),
  ...combine(["deferred"], S2_RULES),
  ...(["7-floor", "6-floor"] as const).flatMap((version) => [
    { version, release: "deferred", style: "call", rule: "stock" } as const,
    { version, release: "progressive", style: "confirmation", rule: "stock+tool-calls" } as const,
  ]),
  ...overSockets(STOCK_RULES),
  ...OVER_BIDI,
  ...OVER_LIVE,
  ...SAFE,
];

/** Where what expires is closed by whoever asks next; a live run has been waiting and goes on. */
export const CLOSED_LATER: readonly Combination[] = EVERYWHERE.filter(
  ({ transport }) => transport !== "live",
);

/** The S2 rule for BIDI as written too: on these chunks it does what the corrected one does. */
export const EVERYWHERE_AND_BIDI: readonly Combination[] = [
  ...EVERYWHERE,
  ...combine(["deferred"], ["s2-bidi"]),
];

/** Where the rule does not matter: nothing is sent automatically. */
export const EVERY_RELEASE: readonly Combination[] = [
  ...combine(RELEASES, ["stock"]),
  ...overSockets(["stock"]),
  // One for each major: what a reader gets is the same over either socket.
  ...OVER_BIDI.filter(({ rule }) => rule === "stock"),
];

/** Where it is the body of a request that matters: over each transport, for either major. */
export const EACH_TRANSPORT: readonly Combination[] = [
  { version: "7", release: "deferred", style: "call", rule: "safe" },
  { version: "7", release: "progressive", style: "call", rule: "stock", transport: "websocket" },
  { version: "7", release: "deferred", style: "call", rule: "safe", transport: "bidi" },
  { version: "7", release: "progressive", style: "call", rule: "safe", transport: "live" },
  { version: "6", release: "progressive", style: "call", rule: "stock+tool-calls" },
  { version: "6", release: "deferred", style: "call", rule: "safe", transport: "bidi" },
];

/** Where a request may bring tools along; a live model is told of its tools when it connects. */
export const EACH_TURN: readonly Combination[] = EACH_TRANSPORT.filter(
  ({ transport }) => transport !== "live",
);

/** Where the S2 rules meet a release that is not made for them. */
export const S2_ON_PROGRESSIVE: readonly Combination[] = combine(
  ["progressive"],
  [...S2_RULES, "s2-bidi"],
);

export function kitOf(combination: Combination): Kit {
  return kits[combination.version];
}

/** Posts of one exchange with gates one after the other; the literal S2-SSE rule sends early. */
export function inSequence(gates: number): (rule: Rule) => number {
  return (rule) => (rule === "s2-sse" && gates > 0 ? 2 * gates : gates + 1);
}

/** Posts of one exchange with its gates in one step. */
export function together(gates: number): (rule: Rule) => number {
  return (rule) => (rule === "s2-sse" ? gates + 1 : 2);
}
