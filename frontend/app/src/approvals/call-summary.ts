import { numberText } from "../components/number-text.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { isRecord } from "./approval-requests.ts";

const AMOUNT = /^(?:.*[_ ])?(?:amount|price|total|sum|cost|fee|balance)$/i;
const CURRENCY = /^(?:.*[_ ])?(?:currency|ccy)$/i;
const PAYEE =
  /^(?:.*[_ ])?(?:recipient|payee|beneficiary|to|customer|supplier|merchant|iban|account|email)$/i;
const CURRENCY_CODE = /^[A-Z]{3}$/;

/** Longer values are not repeated outside of the table of arguments. */
const MAX_VALUE = 40;
const MAX_VALUES = 3;

function isScalar(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

/** The currency that belongs to the amounts among the arguments, if there is exactly one. */
export function currencyOf(args: Readonly<Record<string, unknown>>): string | undefined {
  const code = currencyArgument(args);
  return code !== undefined && CURRENCY_CODE.test(code) ? code : undefined;
}

function currencyArgument(args: Readonly<Record<string, unknown>>): string | undefined {
  const codes = Object.entries(args).filter(([name]) => CURRENCY.test(name));
  const code = codes.length === 1 ? codes[0]?.[1] : undefined;
  return typeof code === "string" && code !== "" ? code : undefined;
}

/** Whether an argument is an amount of money. */
export function isAmount(name: string, value: unknown): value is number {
  return typeof value === "number" && AMOUNT.test(name);
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
