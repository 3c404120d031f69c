import { keepPreviousData, useInfiniteQuery, useQueries } from "@tanstack/react-query";
import { RequestRefused } from "sluicegate";
import { errorMessage } from "../error-message.ts";
import { APPROVALS_KEY } from "../sync/approvals-key.ts";
import { useLastQueryError } from "../use-last-query-error.ts";
import type { Approval } from "./approval.ts";
import { type Filter, listApprovals, loadApproval } from "./inbox-api.ts";

/** Approvals expire without an event of this page. */
const REFRESH_MILLISECONDS = 30_000;

/** A list of approvals, kept as the server has it: its events have the queries load again. */
export function useApprovalList(state: "waiting" | "unknown", filter: Filter) {
  const list = useInfiniteQuery({
    queryKey: [...APPROVALS_KEY, state, filter],
    queryFn: ({ pageParam }) => listApprovals(state, filter, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MILLISECONDS,
    refetchOnWindowFocus: "always",
  });
  const { data, hasNextPage, fetchNextPage } = list;
  const error = useLastQueryError(list);
  return {
    approvals: data?.pages.flatMap(({ approvals }) => approvals) ?? [],
    isLoaded: data !== undefined,
    hasMore: hasNextPage,
    loadMore: fetchNextPage,
    problem: error === null ? undefined : errorMessage(error),
    isUnauthenticated: error instanceof RequestRefused && error.status === 401,
  };
}

/** An approval that is open on the page: undefined until it is loaded. */
export interface OpenApproval {
  readonly id: string;
  readonly approval: Approval | undefined;
  readonly problem: string | undefined;
}

/** The approvals with these ids, in their order, as the server has them. */
export function useOpenApprovals(ids: readonly string[]): readonly OpenApproval[] {
  return useQueries({
    queries: ids.map((id) => ({
      queryKey: [...APPROVALS_KEY, "open", id],
      queryFn: () => loadApproval(id),
    })),
    combine: (results) =>
      results.map(({ data, error }, index) => ({
        id: ids[index] ?? "",
        approval: data,
        problem: error === null ? undefined : errorMessage(error),
      })),
  });
}
