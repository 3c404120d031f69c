import "../components/field.css";
import "./inbox.css";
import { ArrowLeft } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { branding } from "../branding.ts";
import { ColorSchemeSelect } from "../color-scheme.tsx";
import { Badge } from "../components/badge.tsx";
import { ErrorBoundary } from "../components/error-boundary.tsx";
import { PageLink } from "../components/page-link.tsx";
import { moveFocus } from "../components/reflex-guard.ts";
import { rootPath } from "../page-paths.ts";
import { SignIn } from "../sign-in.tsx";
import { SignedInUser } from "../signed-in-user.tsx";
import { NotificationButton } from "../sync/notification-button.tsx";
import { useApprovalBadge } from "../sync/use-approval-badge.ts";
import { useSync } from "../sync/use-sync.ts";
import { ApprovalCards } from "./approval-cards.tsx";
import { AuditTrail } from "./audit-trail.tsx";
import { NO_FILTER } from "./inbox-api.ts";
import { UnknownOutcomes } from "./unknown-outcomes.tsx";
import { useApprovalList } from "./use-inbox.ts";
import { type InboxRoute, routeUrl, useInboxRoute, type View } from "./use-inbox-route.ts";
import { WaitingList } from "./waiting-list.tsx";

const VIEWS: readonly { readonly view: View; readonly label: string }[] = [
  { view: "waiting", label: "Waiting" },
  { view: "unknown", label: "Unknown outcomes" },
  { view: "history", label: "History" },
];

interface ViewsProps {
  readonly current: View;
  readonly waiting: string;
  readonly onOpen: (view: View) => void;
}

function Views({ current, waiting, onOpen }: ViewsProps) {
  return (
    <nav className="inbox-views" aria-label="Views">
      {VIEWS.map(({ view, label }) => (
        <PageLink
          key={view}
          href={routeUrl({ view, ids: [] })}
          aria-current={view === current ? "page" : undefined}
          onOpen={() => onOpen(view)}
        >
          {label}
          {view === "waiting" && waiting !== "0" && (
            <>
              {" "}
              <Badge tone="accent">{waiting}</Badge>
            </>
          )}
        </PageLink>
      ))}
    </nav>
  );
}

function heading({ view, ids }: InboxRoute): string {
  if (view === "unknown") return "Unknown outcomes";
  if (view === "history") return "History";
  if (ids.length === 0) return "Waiting for you";
  return ids.length === 1 ? "One approval" : `${ids.length} approvals`;
}

interface ContentProps {
  readonly route: InboxRoute;
  readonly onRoute: (route: InboxRoute) => void;
}

function Content({ route, onRoute }: ContentProps) {
  const { view, ids } = route;
  const toList = () => onRoute({ view: "waiting", ids: [] });
  const title = useRef<HTMLHeadingElement>(null);
  const shown = useRef(route);
  useEffect(() => {
    // The content that had the focus is gone.
    if (shown.current !== route && title.current !== null) moveFocus(title.current);
    shown.current = route;
  }, [route]);
  return (
    <>
      {view === "waiting" && ids.length > 0 && (
        <PageLink className="row text-sm" href={routeUrl({ view, ids: [] })} onOpen={toList}>
          <ArrowLeft size={16} /> All waiting approvals
        </PageLink>
      )}
      <h2 ref={title} tabIndex={-1}>
        {heading(route)}
      </h2>
      {view === "unknown" && <UnknownOutcomes />}
      {view === "history" && <AuditTrail />}
      {view === "waiting" && ids.length > 0 && <ApprovalCards key={ids.join(" ")} ids={ids} />}
      {view === "waiting" && ids.length === 0 && (
        <WaitingList onOpen={(chosen) => onRoute({ view: "waiting", ids: chosen })} />
      )}
    </>
  );
}

/** The page of the approvals of all chats. */
export function InboxPage() {
  const [theme] = useState(branding);
  const [route, navigate] = useInboxRoute();
  const waiting = useApprovalBadge(`Approvals · ${theme.title}`);
  const { isUnauthenticated } = useApprovalList("waiting", NO_FILTER);
  const openChat = useCallback((chat: string) => {
    location.assign(`${rootPath()}?chat=${encodeURIComponent(chat)}`);
  }, []);
  useSync(openChat);
  return (
    <div className="inbox">
      <header className="inbox-header">
        <img className="logo" src={theme.logo} alt="" />
        <h1 className="ellipsis grow">Approvals · {theme.title}</h1>
        <a href={rootPath()} className="no-shrink text-sm">
          Chats
        </a>
      </header>
      {isUnauthenticated ? (
        <main className="main">
          <SignIn />
        </main>
      ) : (
        <>
          <Views
            current={route.view}
            waiting={waiting}
            onOpen={(view) => navigate({ view, ids: [] })}
          />
          <main className="inbox-content stack">
            <ErrorBoundary message="This cannot be shown. Reload the page.">
              <Content route={route} onRoute={navigate} />
            </ErrorBoundary>
          </main>
          <footer className="inbox-footer">
            <SignedInUser />
            <ColorSchemeSelect />
            <NotificationButton />
          </footer>
        </>
      )}
    </div>
  );
}
