import type { ComponentProps, MouseEvent } from "react";

type PageLinkProps = ComponentProps<"a"> & {
  readonly href: string;
  readonly onOpen: () => void;
};

/**
 * A link within the page. A plain click calls `onOpen`; the browser itself opens the link in
 * another tab or window.
 */
export function PageLink({ href, onOpen, ...rest }: PageLinkProps) {
  const onClick = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onOpen();
  };
  return <a {...rest} href={href} onClick={onClick} />;
}
