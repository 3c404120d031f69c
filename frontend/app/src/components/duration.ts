const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

function inUnits(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** A duration in the largest unit that gives a whole number; one day is `24 hours`. */
export function durationText(seconds: number): string {
  const unit = UNITS.find(
    ([name, size]) => seconds % size === 0 && seconds >= (name === "day" ? 2 * size : size),
  );
  const [name, size] = unit ?? ["second", 1];
  return inUnits(seconds / size, name);
}

/** The remaining time in the largest unit of which there is more than one. */
export function timeUntil(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1000);
  const [name, size] = UNITS.find(([, size]) => seconds >= 2 * size) ?? ["second", 1];
  return `${inUnits(Math.round(seconds / size), name)} left`;
}
