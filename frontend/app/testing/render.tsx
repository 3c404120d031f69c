import { MantineProvider } from "@mantine/core";
import { render, within } from "@testing-library/react";
import type { ReactNode } from "react";

/** Render a node with the providers of the page; `content` is its container. */
export function renderPage(node: ReactNode) {
  const withProviders = (child: ReactNode) => (
    <MantineProvider env="test">
      <main>{child}</main>
    </MantineProvider>
  );
  const { container, rerender } = render(withProviders(node));
  return {
    content: within(container).getByRole("main"),
    rerender: (next: ReactNode) => rerender(withProviders(next)),
  };
}
