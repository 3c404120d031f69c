const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}

/**
 * The time of a timestamp of today, else its date; empty if it is invalid. The first use of
 * `Intl.DateTimeFormat` would take as long as the rendering of the list.
 */
export function chatDate(timestamp: string, now: Date): string {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  if (date.toDateString() === now.toDateString()) {
    return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
  }
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}`;
  return date.getFullYear() === now.getFullYear() ? day : `${day} ${date.getFullYear()}`;
}
