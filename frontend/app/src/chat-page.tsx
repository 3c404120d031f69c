import "./page.css";
// The style of the drawer comes with the page: a stylesheet that failed once is not loaded again.
import "./components/drawer.css";
import "./components/field.css";
import "./inspector/developer-drawer.css";
import { Inbox, Menu, Wrench, X } from "lucide-react";
import { useCallback, useState } from "react";
import { branding } from "./branding.ts";
import { ChatView } from "./chat/chat-view.tsx";
import { ChatList } from "./chats/chat-list.tsx";
import { useChats } from "./chats/use-chats.ts";
import { ColorSchemeSelect } from "./color-scheme.tsx";
import { Alert } from "./components/alert.tsx";
import { Badge } from "./components/badge.tsx";
import { Button, IconButton } from "./components/button.tsx";
import { ErrorBoundary } from "./components/error-boundary.tsx";
import { lazyImport, useLazyImport } from "./components/use-lazy-import.ts";
import type { Recording } from "./inspector/wire-recorder.ts";
import { createChatId } from "./new-chats.ts";
import { inboxPath } from "./page-paths.ts";
import { usePreferences } from "./preferences.ts";
import { SignIn } from "./sign-in.tsx";
import { SignedInUser } from "./signed-in-user.tsx";
import { NotificationButton } from "./sync/notification-button.tsx";
import { useApprovalBadge } from "./sync/use-approval-badge.ts";
import { useSync } from "./sync/use-sync.ts";
import { useChatId } from "./use-chat-route.ts";
import { useDebounced } from "./use-debounced.ts";

const developerTools = lazyImport(async () => {
  const [{ DeveloperDrawer }, { startRecording }] = await Promise.all([
    import("./inspector/developer-drawer.tsx"),
    import("./inspector/wire-recorder.ts"),
  ]);
  return { DeveloperDrawer, startRecording };
});

/** Milliseconds without a key press before a search. */
const SEARCH_DELAY = 200;

/** A recording of the page's requests, which exists while the developer drawer is open. */
function useRecording() {
  const [recording, setRecording] = useState<Recording>();
  const [, load, problem] = useLazyImport(developerTools);
  const start = async () => {
    if (await load()) setRecording(developerTools.loaded()?.startRecording());
  };
  const stop = () => {
    recording?.stop();
    setRecording(undefined);
  };
  return { recording, start, stop, problem };
}

/** The page: the list of chats and the open chat. */
export function ChatPage() {
  const [id, navigate] = useChatId();
  const [query, setQuery] = useState("");
  const chats = useChats(useDebounced(query, SEARCH_DELAY));
  const { refresh } = chats;
  const preferences = usePreferences();
  const [theme] = useState(branding);
  const [isNavOpen, setNavOpen] = useState(false);
  const { recording, problem, start: startRecording, stop: stopRecording } = useRecording();
  const DeveloperDrawer = developerTools.loaded()?.DeveloperDrawer;
  const openChat = useCallback(
    (chat: string) => {
      setNavOpen(false);
      navigate(chat);
    },
    [navigate],
  );
  const { subscribe, deletedChats } = useSync(openChat);
  const waiting = useApprovalBadge(theme.title);
  return (
    <div className="page" data-nav={isNavOpen ? "open" : "closed"}>
      <header className="page-header">
        <IconButton
          label={isNavOpen ? "Hide the chats" : "Show the chats"}
          className="nav-toggle"
          aria-expanded={isNavOpen}
          onClick={() => setNavOpen(!isNavOpen)}
        >
          {isNavOpen ? <X size={20} /> : <Menu size={20} />}
        </IconButton>
        <img className="logo" src={theme.logo} alt="" />
        <h1 className="ellipsis">{theme.title}</h1>
      </header>
      <nav className="sidebar" aria-label="Chats">
        <div className="sidebar-list">
          {!chats.isUnauthenticated && (
            <ChatList
              chats={chats}
              query={query}
              onQuery={setQuery}
              openId={id}
              onOpen={openChat}
              onNew={() => openChat(createChatId())}
            />
          )}
        </div>
        {!chats.isUnauthenticated && (
          <a className="inbox-link" href={inboxPath()}>
            <Inbox size={16} /> <span className="grow">Approvals</span>{" "}
            {waiting !== "0" && (
              <Badge tone="accent" role="img" aria-label={`${waiting} waiting`}>
                {waiting}
              </Badge>
            )}
          </a>
        )}
        {!chats.isUnauthenticated && <SignedInUser />}
        <div className="sidebar-footer">
          <ColorSchemeSelect />
          <NotificationButton />
          <IconButton
            label="Developer tools"
            aria-pressed={recording !== undefined}
            onClick={() => (recording === undefined ? void startRecording() : stopRecording())}
          >
            <Wrench size={18} />
          </IconButton>
        </div>
        {problem !== undefined && (
          <p className="text-sm danger" role="alert">
            {problem}
          </p>
        )}
      </nav>
      {chats.isUnauthenticated && (
        <main className="main">
          <SignIn />
        </main>
      )}
      {/* The chat stays: a message that was refused with 401 becomes a draft in it. */}
      <main className="main" hidden={chats.isUnauthenticated}>
        {deletedChats.has(id) && (
          <div className="centered">
            <Alert tone="warning" isAnnounced title="This chat was deleted">
              <div>
                <Button size="sm" onClick={() => openChat(createChatId())}>
                  New chat
                </Button>
              </div>
            </Alert>
          </div>
        )}
        {!deletedChats.has(id) && (
          <ErrorBoundary
            key={id}
            message="This chat cannot be shown. Reload the page, or open a new chat."
            onNewChat={() => openChat(createChatId())}
          >
            <ChatView
              id={id}
              preferences={preferences}
              fetch={recording?.fetch}
              onChanged={refresh}
              subscribe={subscribe}
            />
          </ErrorBoundary>
        )}
      </main>
      {recording !== undefined && DeveloperDrawer !== undefined && (
        <DeveloperDrawer
          preferences={preferences}
          log={recording.log}
          chatId={id}
          onClose={stopRecording}
        />
      )}
    </div>
  );
}
