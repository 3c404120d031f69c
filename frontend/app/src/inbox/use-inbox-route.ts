import { useCallback, useMemo, useSyncExternalStore } from "react";
import { inboxPath } from "../page-paths.ts";

export type View = "waiting" | "unknown" | "history";

/** What the page shows: a view, and the approvals that are open in it. */
export interface InboxRoute {
  readonly view: View;
  readonly ids: readonly string[];
}

const ROUTE_CHANGED = "sluicegate:inbox-route-changed";

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  addEventListener(ROUTE_CHANGED, listener);
  return () => {
    removeEventListener("popstate", listener);
    removeEventListener(ROUTE_CHANGED, listener);
  };
}

/** The id of the approval in the path. */
function idOfPath(): string | undefined {
  const below = `${inboxPath()}/`;
  if (!location.pathname.startsWith(below)) return undefined;
  const id = location.pathname.slice(below.length);
  try {
    return decodeURIComponent(id) || undefined;
  } catch {
    return id;
  }
}

/** The route as a text, which is the same until it changes. */
function currentRoute(): string {
  const view = new URLSearchParams(location.search).get("view");
  const { ids } = (history.state ?? {}) as { ids?: unknown };
  const id = idOfPath();
  const chosen = Array.isArray(ids) && ids.every((each) => typeof each === "string") ? ids : [];
  const route: InboxRoute = {
    view: view === "unknown" || view === "history" ? view : "waiting",
    ids: id === undefined ? chosen : [id],
  };
  return JSON.stringify(route);
}

/** The URL of a route; several open approvals have none of their own. */
export function routeUrl({ view, ids }: InboxRoute): string {
  if (view !== "waiting") return `${inboxPath()}?view=${view}`;
  return inboxPath(ids.length === 1 ? ids[0] : undefined);
}

/** The route of the URL and the history, and a function that navigates to another one. */
export function useInboxRoute(): readonly [InboxRoute, (route: InboxRoute) => void] {
  const text = useSyncExternalStore(subscribe, currentRoute);
  const route = useMemo(() => JSON.parse(text) as InboxRoute, [text]);
  const navigate = useCallback((next: InboxRoute) => {
    history.pushState({ ids: next.ids }, "", routeUrl(next));
    dispatchEvent(new Event(ROUTE_CHANGED));
  }, []);
  return [route, navigate];
}
