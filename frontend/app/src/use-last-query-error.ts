import { useState } from "react";

/** What is read of a query of TanStack Query. */
interface QueryState {
  readonly error: Error | null;
  /** Whether the query has neither data nor an error. */
  readonly isPending: boolean;
}

/**
 * The error with which the last request of a query ended; null if it succeeded.
 *
 * A query without data forgets its error while the request is sent again. What is shown for the
 * error, as a form that a person fills in, must stay until the request has ended.
 */
export function useLastQueryError({ error, isPending }: QueryState): Error | null {
  const [last, setLast] = useState<Error | null>(null);
  if (isPending) return last;
  if (error !== last) setLast(error);
  return error;
}
