import type { ReactNode } from "react";

/** An icon: strokes on a grid of 24, in the text colour, hidden from screen readers. */
function icon(strokes: ReactNode) {
  return ({ size = 18 }: { readonly size?: number }) => (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={2}
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {strokes}
    </svg>
  );
}

export const Plus = icon(<path d="M12 5v14M5 12h14" />);
export const Cross = icon(<path d="M18 6 6 18M6 6l12 12" />);
export const Check = icon(<path d="m5 12 5 5L20 7" />);
export const Chevron = icon(<path d="m9 6 6 6-6 6" />);
export const ArrowDown = icon(<path d="M12 5v14M6 13l6 6 6-6" />);
export const Send = icon(<path d="M12 19V5M6 11l6-6 6 6" />);
export const Stop = icon(<rect x="6" y="6" width="12" height="12" rx="2" />);
export const Copy = icon(
  <>
    <rect x="8" y="8" width="12" height="12" rx="2" />
    <path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h2" />
  </>,
);
export const Pencil = icon(<path d="m4 20 1-5L16 4l4 4L9 19zM14 6l4 4" />);
export const Trash = icon(<path d="M4 7h16M10 7V4h4v3M6 7l1 13h10l1-13M10 11v5M14 11v5" />);
export const Refresh = icon(<path d="M20 11a8 8 0 1 0-2 6M20 4v7h-7" />);
export const Paperclip = icon(
  <path d="m20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 5 5l-8.5 8.5a1.7 1.7 0 0 1-2.5-2.5L15 7" />,
);
export const Microphone = icon(
  <>
    <rect x="9" y="3" width="6" height="11" rx="3" />
    <path d="M5 11a7 7 0 0 0 14 0M12 18v3" />
  </>,
);
export const Muted = icon(
  <path d="m4 4 16 16M9 9v2a3 3 0 0 0 5 2M15 10V6a3 3 0 0 0-6-1M5 11a7 7 0 0 0 11 6M19 11v1M12 18v3" />,
);
export const Warning = icon(<path d="M12 4 2.5 20h19zM12 10v4M12 17v.5" />);
export const List = icon(<path d="M4 6h16M4 12h10M4 18h13" />);
export const FileIcon = icon(
  <path d="M14 3H7a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V7zv4h4" />,
);
