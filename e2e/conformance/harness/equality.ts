import { isDeepStrictEqual } from "node:util";
import { isGranted, isTool, type Message, type Part } from "./messages.ts";

/** How a message was received, and by which major. */
export interface Origin {
  readonly major: 6 | 7;
  readonly resumed: boolean;
}

/** Properties that depend on how a part was streamed. */
const TRANSIENT = new Set([
  "rawInput",
  "providerMetadata",
  "callProviderMetadata",
  "resultProviderMetadata",
]);

/** Selects the parts that are not compared. */
export type PartFilter = (part: Part) => boolean;

function approvalOf(part: Part, origin: Origin): unknown {
  if (part.approval === undefined) return undefined;
  const { id, approved, reason } = part.approval;
  if (origin.major === 6 && isGranted(part)) return undefined;
  // AI SDK 6 has no chunk for a decision, so a resumed message lacks decided approvals.
  if (origin.resumed && origin.major === 6 && approved !== undefined) return undefined;
  return withoutUndefined({ id, approved, reason });
}

function stateOf(part: Part, origin: Origin): unknown {
  if (part.type === "text" || part.type === "reasoning") return undefined;
  // In AI SDK 6, a decided call without an outcome has no decision if it was resumed or granted.
  const lacksDecision = origin.major === 6 && (origin.resumed || isGranted(part));
  if (lacksDecision && part.state === "approval-responded") return "input-available";
  return part.state;
}

function withoutUndefined(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}

function comparable(part: Part, origin: Origin): unknown {
  const kept = Object.entries(part).filter(
    ([key]) => !TRANSIENT.has(key) && !(part.type === "reasoning" && key === "id"),
  );
  return withoutUndefined({
    ...Object.fromEntries(kept),
    state: stateOf(part, origin),
    approval: isTool(part) ? approvalOf(part, origin) : undefined,
  });
}

function parts(message: Message | undefined, origin: Origin, isIgnored: PartFilter): unknown[] {
  return (message?.parts ?? [])
    .filter((part) => part.type !== "step-start" && !part.type.startsWith("data-"))
    .filter((part) => !isIgnored(part))
    .map((part) => comparable(part, origin));
}

/**
 * The first difference between two messages; undefined if they are equal.
 *
 * Steps, `data-*`, undefined keys, raw input, provider metadata, reasoning ids and the state of
 * text and reasoning are ignored; approvals are compared by id, decision and reason. `origin` is that
 * of the message with less information: a resumed one in AI SDK 6 lacks decided approvals.
 */
export function difference(
  one: Message | undefined,
  other: Message | undefined,
  origin: Origin,
  isIgnored: PartFilter = () => false,
): string | undefined {
  if (one?.id !== other?.id) return `ids ${one?.id} and ${other?.id}`;
  if (one?.role !== other?.role) return `roles ${one?.role} and ${other?.role}`;
  const [left, right] = [parts(one, origin, isIgnored), parts(other, origin, isIgnored)];
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    if (!isDeepStrictEqual(left[index], right[index])) {
      const [here, there] = [left[index], right[index]].map((part) => JSON.stringify(part));
      return `part ${index + 1}:\n  ${here}\n  ${there}`;
    }
  }
  return undefined;
}
