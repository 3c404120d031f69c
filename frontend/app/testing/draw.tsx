import { MantineProvider } from "@mantine/core";
import { render, within } from "@testing-library/react";
import type { ReactNode } from "react";

/** Draw something as the page does; `content` holds it, `redraw` draws it anew. */
export function draw(node: ReactNode) {
  const inKit = (child: ReactNode) => (
    <MantineProvider env="test">
      <main>{child}</main>
    </MantineProvider>
  );
  const { container, rerender } = render(inKit(node));
  return {
    content: within(container).getByRole("main"),
    redraw: (again: ReactNode) => rerender(inKit(again)),
  };
}
