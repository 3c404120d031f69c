import "./styles/tokens.css";
import "./styles/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { loadInitialChat } from "./chat/initial-load.ts";
import { ChatPage } from "./chat-page.tsx";
import { ErrorBoundary } from "./components/error-boundary.tsx";
import { isInbox } from "./page-paths.ts";
import { createQueryClient } from "./query-client.ts";
import { chatIdOfUrl } from "./use-chat-route.ts";

const root = document.getElementById("page");
if (root === null) throw new Error("The page has no root element.");

async function loadPage(): Promise<ReactNode> {
  if (isInbox()) {
    const { InboxPage } = await import("./inbox/inbox-page.tsx");
    return <InboxPage />;
  }
  await loadInitialChat(chatIdOfUrl());
  return <ChatPage />;
}

const NOT_SHOWN = "The page cannot be shown. Reload it.";

// `await` at the top level would have the bundler split the script into a dozen files.
void loadPage()
  .catch(() => <p role="alert">{NOT_SHOWN}</p>)
  .then((page) =>
    createRoot(root).render(
      <ErrorBoundary message={NOT_SHOWN}>
        <QueryClientProvider client={createQueryClient()}>{page}</QueryClientProvider>
      </ErrorBoundary>,
    ),
  );
