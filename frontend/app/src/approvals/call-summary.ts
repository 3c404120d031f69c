import { numberText } from "../components/canonical-number.ts";
import { isRecord } from "../is-record.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { currencyArgument, isAmount } from "./amount-and-currency-arguments.ts";

const PAYEE =
  /^(?:.*[_ ])?(?:recipient|payee|beneficiary|to|customer|supplier|merchant|iban|account|email)$/i;

/** Longer values are not repeated outside of the table of arguments. */
const MAX_VALUE = 40;
const MAX_VALUES = 3;

function isScalar(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function shortText(value: string | number | boolean): string {
  const text = typeof value === "number" ? numberText(value) : visibleName(String(value));
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

/** The arguments that say the most about a call on one line: payee and amount, or the first ones. */
export function callSummary(
  input: unknown,
  defaults: Readonly<Record<string, unknown>> = {},
): string {
  const args = isRecord(input) ? { ...defaults, ...input } : {};
  const entries = Object.entries(args).filter(([, value]) => isScalar(value) && value !== "");
  const payee = entries.find(([name]) => PAYEE.test(name));
  const amount = entries.find(([name, value]) => isAmount(name, value));
  const chosen = [payee, amount].filter((entry) => entry !== undefined);
  // What is no currency is shown as it is, since it is part of what runs.
  const currency = currencyArgument(args);
  return (chosen.length > 0 ? chosen : entries.slice(0, MAX_VALUES))
    .map(([name, value]) => {
      const text = shortText(value as string | number | boolean);
      const hasCurrency = isAmount(name, value) && currency !== undefined;
      return hasCurrency ? `${text} ${shortText(currency)}` : text;
    })
    .join(", ");
}
