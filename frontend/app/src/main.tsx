import "./styles/tokens.css";
import "./styles/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { loadFirstChat } from "./chat/stored-messages.ts";
import { chatIdOfUrl } from "./chat-id.ts";
import { ErrorBoundary } from "./components/error-boundary.tsx";
import { Page } from "./page.tsx";
import { createQueryClient } from "./query-client.ts";

const root = document.getElementById("page");
if (root === null) throw new Error("The page has no root element.");
// `await` at the top level would have the bundler split the script into a dozen files.
void loadFirstChat(chatIdOfUrl()).then(() =>
  createRoot(root).render(
    <ErrorBoundary message="The page cannot be shown. Reload it.">
      <QueryClientProvider client={createQueryClient()}>
        <Page />
      </QueryClientProvider>
    </ErrorBoundary>,
  ),
);
