import { useQuery } from "@tanstack/react-query";
import { loadSession } from "./session.ts";

/** The session of the user, which stays the same until the page is loaded again. */
export function useSession() {
  return useQuery({
    queryKey: ["session"],
    queryFn: loadSession,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
