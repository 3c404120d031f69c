import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** How long a person still has, in words; in seconds only when it is getting close. */
export function timeLeft(milliseconds: number): string {
  if (milliseconds <= 0) return "Expired: nothing will run any more";
  if (milliseconds < 2 * MINUTE) return `Expires in ${Math.ceil(milliseconds / SECOND)} s`;
  if (milliseconds < 2 * HOUR) return `Expires in ${Math.round(milliseconds / MINUTE)} min`;
  return `Expires in ${Math.round(milliseconds / HOUR)} h`;
}

/** Counts down to an ISO time; what cannot be read as one is not shown. */
export function TimeLeft({ until }: { readonly until: string }) {
  const deadline = Date.parse(until);
  const [now, setNow] = useState(Date.now);
  const left = deadline - now;
  const pause = left < 3 * MINUTE ? SECOND : MINUTE / 2;
  useEffect(() => {
    if (!(left > 0)) return;
    const timer = setTimeout(() => setNow(Date.now()), pause);
    return () => clearTimeout(timer);
  }, [left, pause]);
  if (Number.isNaN(deadline)) return null;
  return (
    <Text component="time" dateTime={until} size="sm" c="dimmed">
      {timeLeft(left)}
    </Text>
  );
}
