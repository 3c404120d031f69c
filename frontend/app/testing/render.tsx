import { QueryClientProvider } from "@tanstack/react-query";
import { render, within } from "@testing-library/react";
import type { ReactNode } from "react";
import { ReflexDelay } from "../src/components/reflex-guard.ts";
import { createQueryClient } from "../src/query-client.ts";

/** A component that provides an empty cache of what the server stores. */
export function createProvider() {
  const client = createQueryClient();
  return ({ children }: { readonly children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
}

/**
 * Render a node in the main landmark of the page; `content` is its container. Buttons accept
 * presses at once, or after `reflexDelay` milliseconds.
 */
export function renderPage(node: ReactNode, reflexDelay = 0) {
  const inMain = (child: ReactNode) => (
    <ReflexDelay value={reflexDelay}>
      <main>{child}</main>
    </ReflexDelay>
  );
  const { container, rerender } = render(inMain(node), { wrapper: createProvider() });
  return {
    content: within(container).getByRole("main"),
    rerender: (next: ReactNode) => rerender(inMain(next)),
  };
}
