import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { countApprovals } from "../api.ts";
import { APPROVALS_KEY } from "./approvals-key.ts";

/** Turns continue without this page. */
const REFRESH_MILLISECONDS = 30_000;
const MAX_COUNT = 99;

function favicon(): HTMLLinkElement | null {
  return document.querySelector("link[rel=icon]");
}

/** An icon with a count, as a URL. */
function iconWithText(text: string): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#ae2018"/><text x="16" y="23" text-anchor="middle" font-family="sans-serif" font-weight="bold" font-size="${text.length > 2 ? 14 : 20}" fill="#fff">${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/**
 * Show the number of approvals that wait, over all chats, in the title and the icon of the page, and
 * return it as a text.
 */
export function useApprovalBadge(title: string): string {
  const { data: count = 0 } = useQuery({
    queryKey: APPROVALS_KEY,
    queryFn: countApprovals,
    refetchInterval: REFRESH_MILLISECONDS,
    refetchOnWindowFocus: "always",
  });
  const shown = count > MAX_COUNT ? `${MAX_COUNT}+` : String(count);
  useEffect(() => {
    document.title = count > 0 ? `(${shown}) ${title}` : title;
    const link = favicon();
    if (link === null || count === 0) return;
    const original = link.href;
    link.href = iconWithText(shown);
    return () => {
      link.href = original;
    };
  }, [count, shown, title]);
  return shown;
}
