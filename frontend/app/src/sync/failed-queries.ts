import type { QueryClient } from "@tanstack/react-query";
import { RequestRefused } from "sluicegate";

/** Whether the server would refuse the same request again. */
export function isFinal(error: unknown): boolean {
  return error instanceof RequestRefused && error.status < 429;
}

/** Load again what is shown as failed, since the server may be reached now. */
export function retryFailedQueries(client: QueryClient): void {
  void client.refetchQueries({
    type: "active",
    predicate: ({ state }) => state.status === "error" && !isFinal(state.error),
  });
}
