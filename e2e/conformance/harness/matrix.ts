import type { Release } from "../../../frontend/client/src/testing/index.ts";
import { type AiSdk, SDKS, type SocketTransport, type Version } from "./ai-sdk.ts";
import type { RuleName } from "./send-rules.ts";
import { STYLES, type Style } from "./servers.ts";

/** One combination of client, release policy, approval style, rule and transport. */
export interface Combination {
  readonly version: Version;
  readonly release: Release;
  readonly style: Style;
  readonly rule: RuleName;
  /** A socket transport; SSE without one. */
  readonly transport?: SocketTransport;
}

const RELEASES: readonly Release[] = ["deferred", "preview", "progressive"];
const MAJORS: readonly Version[] = ["7", "6"];
const STOCK_RULES: readonly RuleName[] = ["stock", "stock+tool-calls"];
const S2_RULES: readonly RuleName[] = ["s2", "s2-sse"];

export function nameOf({ version, release, style, rule, transport }: Combination): string {
  const over = transport === undefined ? "" : `${transport}, `;
  return `${over}${release}, ${style}, ai ${version}, ${rule}`;
}

function combine(releases: readonly Release[], rules: readonly RuleName[]): Combination[] {
  return releases.flatMap((release) =>
    STYLES.flatMap((style) =>
      MAJORS.flatMap((version) => rules.map((rule) => ({ version, release, style, rule }))),
    ),
  );
}

/** The stock socket transport; it is independent of releases and styles, so one style is enough. */
function overSockets(rules: readonly RuleName[]): Combination[] {
  return combine(["deferred", "progressive"], rules)
    .filter(({ version, style }) => version === "7" && style === "call")
    .map((combination) => ({ ...combination, transport: "websocket" }));
}

const BIDI = { style: "call", transport: "bidi" } as const;

/** The BIDI transport: each major with each of two releases, and with each stock rule. */
const OVER_BIDI: readonly Combination[] = [
  { ...BIDI, version: "7", release: "deferred", rule: "stock+tool-calls" },
  { ...BIDI, version: "7", release: "progressive", rule: "stock" },
  { ...BIDI, version: "6", release: "deferred", rule: "stock" },
  { ...BIDI, version: "6", release: "progressive", rule: "stock+tool-calls" },
];

const LIVE = { style: "call", transport: "live" } as const;

/** The BIDI transport on the live route. */
export const OVER_LIVE: readonly Combination[] = [
  { ...LIVE, version: "7", release: "deferred", rule: "stock+tool-calls" },
  { ...LIVE, version: "6", release: "progressive", rule: "stock" },
];

/**
 * Style `confirmation` on each socket with each kind of rule, and the S2 rules, which are as for SSE,
 * on each socket with each style.
 */
const CONFIRMATION = { release: "deferred", style: "confirmation" } as const;
const CONFIRMATION_AND_S2_OVER_SOCKETS: readonly Combination[] = [
  { ...CONFIRMATION, version: "7", rule: "stock+tool-calls", transport: "websocket" },
  { ...CONFIRMATION, version: "7", rule: "s2-sse", transport: "websocket" },
  { ...CONFIRMATION, version: "7", rule: "s2", transport: "websocket" },
  { ...CONFIRMATION, version: "6", rule: "stock", transport: "bidi" },
  { ...CONFIRMATION, version: "6", rule: "s2-sse", transport: "bidi" },
  { ...CONFIRMATION, version: "7", rule: "safe", transport: "live" },
  { ...CONFIRMATION, version: "6", rule: "s2", transport: "live" },
  { release: "progressive", style: "confirmation", version: "7", rule: "stock", transport: "bidi" },
  { release: "deferred", style: "call", version: "7", rule: "s2-sse", transport: "websocket" },
  { release: "deferred", style: "call", version: "6", rule: "s2", transport: "bidi" },
  { release: "deferred", style: "call", version: "7", rule: "s2", transport: "live" },
];

/** The safe rule: every release and style once. */
const SAFE: readonly Combination[] = [
  { version: "7", release: "preview", style: "call", rule: "safe" },
  { version: "7", release: "deferred", style: "confirmation", rule: "safe" },
  { version: "6", release: "progressive", style: "call", rule: "safe" },
  { version: "6", release: "deferred", style: "confirmation", rule: "safe" },
];

/** Every supported combination, and the oldest supported clients with two of the releases. */
export const EVERYWHERE: readonly Combination[] = [
  ...combine(RELEASES, STOCK_RULES),
  ...combine(["deferred"], S2_RULES),
  ...(["7-floor", "6-floor"] as const).flatMap((version) => [
    { version, release: "deferred", style: "call", rule: "stock" } as const,
    { version, release: "progressive", style: "confirmation", rule: "stock+tool-calls" } as const,
    { ...BIDI, version, release: "deferred", rule: "stock" } as const,
  ]),
  {
    version: "7-floor",
    release: "progressive",
    style: "call",
    rule: "stock",
    transport: "websocket",
  },
  ...overSockets(STOCK_RULES),
  ...OVER_BIDI,
  ...OVER_LIVE,
  ...CONFIRMATION_AND_S2_OVER_SOCKETS,
  ...SAFE,
];

/** Where an expired approval is closed by the next request; a live run continues without one. */
export const CLOSED_LATER: readonly Combination[] = EVERYWHERE.filter(
  ({ transport }) => transport !== "live",
);

/** Also the S2 rule for BIDI as written: for these chunks it equals the corrected one. */
export const EVERYWHERE_AND_BIDI: readonly Combination[] = [
  ...EVERYWHERE,
  ...combine(["deferred"], ["s2-bidi"]),
];

/** Where nothing is sent automatically, so the rule does not matter. */
export const EVERY_RELEASE: readonly Combination[] = [
  ...combine(RELEASES, ["stock"]),
  ...overSockets(["stock"]),
  // One per major: a reader receives the same over either socket.
  ...OVER_BIDI.filter(({ rule }) => rule === "stock"),
];

/** Where the request body matters: each transport, for each major that supports it. */
export const EACH_TRANSPORT: readonly Combination[] = [
  { version: "7", release: "deferred", style: "call", rule: "safe" },
  { version: "7", release: "progressive", style: "call", rule: "stock", transport: "websocket" },
  { version: "7", release: "deferred", style: "call", rule: "safe", transport: "bidi" },
  { version: "7", release: "progressive", style: "call", rule: "safe", transport: "live" },
  { version: "6", release: "progressive", style: "call", rule: "stock+tool-calls" },
  { version: "6", release: "deferred", style: "call", rule: "safe", transport: "bidi" },
];

/** Where a request may declare tools; a live model gets its tools when it connects. */
export const EACH_TURN: readonly Combination[] = EACH_TRANSPORT.filter(
  ({ transport }) => transport !== "live",
);

/** For the samples: each transport of turns, major, release and style, where outputs are sent too. */
export const EACH_SAMPLE: readonly Combination[] = [
  ...EACH_TURN.filter(({ rule }) => rule !== "stock"),
  ...SAFE,
  ...(["call", "confirmation"] as const).map(
    (style) => ({ version: "7", release: "deferred", style, rule: "stock+tool-calls" }) as const,
  ),
  {
    version: "7",
    release: "progressive",
    style: "call",
    rule: "stock+tool-calls",
    transport: "websocket",
  },
];

/** The S2 rules with a release policy that they do not support. */
export const S2_ON_PROGRESSIVE: readonly Combination[] = combine(
  ["progressive"],
  [...S2_RULES, "s2-bidi"],
);

export function sdkOf(combination: Combination): AiSdk {
  return SDKS[combination.version];
}

/**
 * The posts of an exchange with gated calls in sequence. In style `call`, the literal S2-SSE rule
 * sends early: the part of a decided call keeps its decision until its outcome is released.
 */
export function inSequence(
  count: number,
): (rule: RuleName, combination: Pick<Combination, "style">) => number {
  return (rule, { style }) =>
    rule === "s2-sse" && style === "call" && count > 0 ? 2 * count : count + 1;
}

/** The posts of an exchange with its gated calls in one step. */
export function together(count: number): (rule: RuleName) => number {
  return (rule) => (rule === "s2-sse" ? count + 1 : 2);
}

const PARTS = 3;
const PART = process.env.PART ?? "all";
/** Fewer combinations than these are always played. */
const FEW = 8;

/**
 * The combinations of a story that this run plays: a third of many, another one for each story and, with
 * `make test`, each day. `PART=all`, the default, plays all; `PART=clients`, as `make matrix`, plays one
 * for each client and transport, with another release, style and rule for each story.
 */
export function played(combinations: readonly Combination[], title: string): Combination[] {
  if (PART === "clients") return oneOfEachClient(combinations, title.length);
  if (PART === "all" || combinations.length <= FEW) return [...combinations];
  const first = title.length + Number(PART);
  return combinations.filter((_, index) => (index + first) % PARTS === 0);
}

function oneOfEachClient(combinations: readonly Combination[], number: number): Combination[] {
  const groups = new Map<string, Combination[]>();
  for (const each of combinations) {
    const client = `${each.version} ${each.transport}`;
    groups.set(client, [...(groups.get(client) ?? []), each]);
  }
  return [...groups.values()].flatMap((group) => group[number % group.length] ?? []);
}
