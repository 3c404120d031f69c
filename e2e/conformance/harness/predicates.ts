import type { Message } from "./messages.ts";

// The rules that the client package ships; the corrected one is the same for both transports.
export {
  s2BidiLiteral,
  s2Sse as s2Corrected,
  s2SseLiteral,
  sendAutomaticallyWhen as makeSafeRule,
} from "../../../frontend/client/src/send-automatically.ts";

/** A `sendAutomaticallyWhen` rule. */
export type Predicate = (state: { messages: Message[] }) => boolean | PromiseLike<boolean>;

/** A rule that sends when either of two would. */
export function either(one: Predicate, other: Predicate): Predicate {
  return async (state) => (await one(state)) || (await other(state));
}
