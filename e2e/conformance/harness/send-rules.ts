import { sendAutomaticallyWhen } from "../../../frontend/client/src/send-automatically.ts";
import {
  s2BidiLiteral,
  s2Sse,
  s2SseLiteral,
} from "../../../frontend/client/src/sequential-send-rules.ts";
import type { AiSdk, SendRule } from "./ai-sdk.ts";
import { CLIENT_TOOLS } from "./messages.ts";

/** The name of a `sendAutomaticallyWhen` rule; `s2` is the corrected rule for both transports. */
export type RuleName = "stock" | "stock+tool-calls" | "safe" | "s2" | "s2-sse" | "s2-bidi";

/** A rule that sends if either of two rules does. */
function either(one: SendRule, other: SendRule): SendRule {
  return async (state) => (await one(state)) || (await other(state));
}

/**
 * Create the rule for one chat. The stock rules are those of the SDK version; the safe rule is
 * stateful.
 */
export function createRule(name: RuleName, sdk: AiSdk): SendRule {
  const factories: Record<RuleName, () => SendRule> = {
    stock: () => sdk.stock,
    "stock+tool-calls": () => either(sdk.stock, sdk.toolCalls),
    safe: () => sendAutomaticallyWhen({ clientTools: [...CLIENT_TOOLS] }),
    s2: () => s2Sse,
    "s2-sse": () => s2SseLiteral,
    "s2-bidi": () => s2BidiLiteral,
  };
  return factories[name]();
}
