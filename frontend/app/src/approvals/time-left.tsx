import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The remaining time as text; in seconds only during the last two minutes. */
export function timeLeft(milliseconds: number): string {
  if (milliseconds <= 0) return "Expired: the call will not run";
  if (milliseconds < 2 * MINUTE) return `Expires in ${Math.ceil(milliseconds / SECOND)} s`;
  if (milliseconds < 2 * HOUR) return `Expires in ${Math.round(milliseconds / MINUTE)} min`;
  return `Expires in ${Math.round(milliseconds / HOUR)} h`;
}

/** A countdown to an ISO timestamp; renders nothing for an invalid one. */
export function TimeLeft({ until }: { readonly until: string }) {
  const deadline = Date.parse(until);
  const [now, setNow] = useState(Date.now);
  const remaining = deadline - now;
  const interval = remaining < 3 * MINUTE ? SECOND : MINUTE / 2;
  useEffect(() => {
    if (!(remaining > 0)) return;
    const timer = setTimeout(() => setNow(Date.now()), interval);
    return () => clearTimeout(timer);
  }, [remaining, interval]);
  if (Number.isNaN(deadline)) return null;
  return (
    <Text component="time" dateTime={until} size="sm" c="dimmed">
      {timeLeft(remaining)}
    </Text>
  );
}
