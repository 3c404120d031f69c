/** A moment as time of day, with its date unless it is today. */
export function momentText(milliseconds: number, now = Date.now()): string {
  const isToday = new Date(milliseconds).toDateString() === new Date(now).toDateString();
  return new Intl.DateTimeFormat("en-GB", {
    timeStyle: "short",
    ...(!isToday && { dateStyle: "medium" }),
  }).format(milliseconds);
}
