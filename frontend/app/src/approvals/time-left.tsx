import { useEffect, useState } from "react";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The maximum delay of a timer. */
const MAX_TIMEOUT = 2 ** 31 - 1;

/** The remaining time as text; in seconds only during the last two minutes. */
export function timeLeft(milliseconds: number): string {
  if (milliseconds <= 0) return "Expired: the call will not run";
  if (milliseconds < 2 * MINUTE) return `Expires in ${Math.ceil(milliseconds / SECOND)} s`;
  if (milliseconds < 2 * HOUR) return `Expires in ${Math.round(milliseconds / MINUTE)} min`;
  return `Expires in ${Math.round(milliseconds / HOUR)} h`;
}

/** Whether the moment of an ISO timestamp is over; false for an invalid one. */
export function useIsOver(until: string | undefined): boolean {
  const deadline = until === undefined ? Number.NaN : Date.parse(until);
  const [isOver, setOver] = useState(() => deadline <= Date.now());
  useEffect(() => {
    const remaining = deadline - Date.now();
    setOver(remaining <= 0);
    if (!(remaining > 0)) return;
    const timer = setTimeout(
      () => setOver(deadline <= Date.now()),
      Math.min(remaining, MAX_TIMEOUT),
    );
    return () => clearTimeout(timer);
  }, [deadline]);
  return isOver;
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
  return <time dateTime={until}>{timeLeft(remaining)}</time>;
}
