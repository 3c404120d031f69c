const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?$/;

/** Whether a value is a date of the calendar in the form `2026-03-02`. */
export function isDate(value: unknown): value is string {
  return typeof value === "string" && DATE.test(value) && dateInWords(value) !== undefined;
}

/** Whether a value is a moment in the form `2026-03-02T10:00:00Z`. */
export function isDateTime(value: unknown): value is string {
  return typeof value === "string" && DATE_TIME.test(value) && dateInWords(value) !== undefined;
}

/** An ISO date or time in words, with its weekday; undefined for any other text. */
export function dateInWords(text: string): string | undefined {
  const isDate = DATE.test(text);
  if (!isDate && !DATE_TIME.test(text)) return undefined;
  const date = new Date(isDate ? `${text}T00:00:00Z` : text);
  // `2026-02-31` is the third of March for the browser.
  if (Number.isNaN(date.getTime())) return undefined;
  if (isDate && date.toISOString().slice(0, 10) !== text) return undefined;
  return new Intl.DateTimeFormat("en-GB", {
    dateStyle: "full",
    ...(isDate ? { timeZone: "UTC" } : { timeStyle: "short" }),
  }).format(date);
}
