import "../src/styles/tokens.css";
import "../src/styles/base.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { ErrorBoundary } from "../src/components/error-boundary.tsx";
import { createQueryClient } from "../src/query-client.ts";
import { Playground } from "./playground.tsx";

const root = document.getElementById("page");
if (root === null) throw new Error("The page has no root element.");
createRoot(root).render(
  <ErrorBoundary message="The page cannot be shown. Reload it.">
    <QueryClientProvider client={createQueryClient()}>
      <Playground />
    </QueryClientProvider>
  </ErrorBoundary>,
);
