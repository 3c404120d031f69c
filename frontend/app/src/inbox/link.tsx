import type { ComponentProps, MouseEvent } from "react";

type LinkProps = ComponentProps<"a"> & {
  readonly href: string;
  readonly onOpen: () => void;
};

/** A link within the page; the browser opens it in another tab or window itself. */
export function Link({ href, onOpen, ...rest }: LinkProps) {
  const onClick = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onOpen();
  };
  return <a {...rest} href={href} onClick={onClick} />;
}
