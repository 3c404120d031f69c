const AMOUNT = /^(?:.*[_ ])?(?:amount|price|total|sum|cost|fee|balance)$/i;
const CURRENCY = /^(?:.*[_ ])?(?:currency|ccy)$/i;
const CURRENCY_CODE = /^[A-Z]{3}$/;

/** The currency that belongs to the amounts among the arguments, if there is exactly one. */
export function currencyOf(args: Readonly<Record<string, unknown>>): string | undefined {
  const code = currencyArgument(args);
  return code !== undefined && CURRENCY_CODE.test(code) ? code : undefined;
}

/** The currency that an argument states, as it is written there. */
export function currencyArgument(args: Readonly<Record<string, unknown>>): string | undefined {
  const codes = Object.entries(args).filter(([name]) => CURRENCY.test(name));
  const code = codes.length === 1 ? codes[0]?.[1] : undefined;
  return typeof code === "string" && code !== "" ? code : undefined;
}

/** Whether an argument is an amount of money. */
export function isAmount(name: string, value: unknown): value is number {
  return typeof value === "number" && AMOUNT.test(name);
}
