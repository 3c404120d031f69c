import { isDeepStrictEqual } from "node:util";
import { isRemembered, isTool, type Message, type Part } from "./messages.ts";

/** From where a message was had, and for which major. */
export interface Origin {
  readonly major: 6 | 7;
  readonly resumed: boolean;
}

/** Keys that say how a part came about, not what it is. */
const PASSING = new Set([
  "rawInput",
  "providerMetadata",
  "callProviderMetadata",
  "resultProviderMetadata",
]);

/** Calls of gated client-side tools, which are not compared between approval and output. */
export type Uncompared = (part: Part) => boolean;

function approvalOf(part: Part, origin: Origin): unknown {
  if (part.approval === undefined) return undefined;
  const { id, approved, reason } = part.approval;
  if (origin.major === 6 && isRemembered(part)) return undefined;
  // A 6 client that resumes never hears of a decided approval.
  if (origin.resumed && origin.major === 6 && approved !== undefined) return undefined;
  return plain({ id, approved, reason });
}

function stateOf(part: Part, origin: Origin): unknown {
  if (part.type === "text" || part.type === "reasoning") return undefined;
  // What a 6 client holds of a decided call whose outcome is still held: one that resumes, and any
  // of a decision that the server has made by itself.
  const isUntold = origin.major === 6 && (origin.resumed || isRemembered(part));
  if (isUntold && part.state === "approval-responded") return "input-available";
  return part.state;
}

function plain(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}

function comparable(part: Part, origin: Origin): unknown {
  const kept = Object.entries(part).filter(
    ([key]) => !PASSING.has(key) && !(part.type === "reasoning" && key === "id"),
  );
  return plain({
    ...Object.fromEntries(kept),
    state: stateOf(part, origin),
    approval: isTool(part) ? approvalOf(part, origin) : undefined,
  });
}

function parts(message: Message | undefined, origin: Origin, uncompared: Uncompared): unknown[] {
  return (message?.parts ?? [])
    .filter((part) => part.type !== "step-start" && !part.type.startsWith("data-"))
    .filter((part) => !uncompared(part))
    .map((part) => comparable(part, origin));
}

/**
 * Where two messages differ, or undefined when they are the same message.
 *
 * Steps, `data-*`, undefined keys, raw input, provider metadata, reasoning ids and the state of
 * text and reasoning do not count; approvals are compared by id, decision and reason. `origin` is
 * that of the weaker of the two: a resumed 6 reader knows nothing of decided approvals.
 */
export function difference(
  one: Message | undefined,
  other: Message | undefined,
  origin: Origin,
  uncompared: Uncompared = () => false,
): string | undefined {
  if (one?.id !== other?.id) return `ids ${one?.id} and ${other?.id}`;
  if (one?.role !== other?.role) return `roles ${one?.role} and ${other?.role}`;
  const [left, right] = [parts(one, origin, uncompared), parts(other, origin, uncompared)];
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    if (!isDeepStrictEqual(left[index], right[index])) {
      const [here, there] = [left[index], right[index]].map((part) => JSON.stringify(part));
      return `part ${index + 1}:\n  ${here}\n  ${there}`;
    }
  }
  return undefined;
}
