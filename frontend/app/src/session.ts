import { request } from "./api.ts";
import { removeDrafts } from "./composer/use-draft.ts";

/** The user of this page. */
export interface Session {
  /** Null on a server without authentication. */
  readonly user: string | null;
  readonly canSignOut: boolean;
  /** The people of the demo, who need no sign-in. */
  readonly demoUsers?: readonly string[];
}

const DEMO_COOKIE = "sluicegate-demo-user";

/** A channel that informs the other pages of this browser that the user has changed. */
const USER_CHANGED = "sluicegate.user-changed";

/** A message of the channel. */
export interface UserChange {
  /** False: the user is another one. */
  readonly isSignOut: boolean;
  /** The page that sends it: a channel also reaches the page's own listeners. */
  readonly page: number;
}

const THIS_PAGE = Math.random();

/** The user of this page; rejects with `RequestRefused` if there is none. */
export async function loadSession(): Promise<Session> {
  return (await request("/session")).json();
}

/** Become another person of the demo in every tab of this browser; the pages are loaded anew. */
export function becomeDemoUser(user: string, onChange: () => void = leave): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API needs a newer browser.
  document.cookie = `${DEMO_COOKIE}=${encodeURIComponent(user)}; path=/; samesite=strict`;
  tellOtherTabs(false);
  onChange();
}

/** Load the page anew without a chat: streams, sockets and everything in memory end with it. */
function leave(): void {
  location.replace(location.pathname);
}

function tellOtherTabs(isSignOut: boolean): void {
  const channel = new BroadcastChannel(USER_CHANGED);
  channel.postMessage({ isSignOut, page: THIS_PAGE } satisfies UserChange);
  channel.close();
}

/**
 * End the session in every tab of this browser, and remove the drafts of the user.
 * @param onSignedOut Shows the sign-in; by default the page is loaded anew.
 */
export async function signOut(onSignedOut: () => void = leave): Promise<void> {
  await request("/session", { method: "DELETE" });
  removeDrafts();
  tellOtherTabs(true);
  onSignedOut();
}

/**
 * Call the function when another tab has signed out or become another person, or when the browser
 * restores this page as it was before; returns a function that stops it.
 */
export function watchUser(onChange: () => void = leave): () => void {
  const channel = new BroadcastChannel(USER_CHANGED);
  channel.addEventListener("message", ({ data }: MessageEvent<UserChange>) => {
    // A second navigation would end the first, or one that the person has started since.
    if (data.page === THIS_PAGE) return;
    // This tab may have stored a draft since.
    if (data.isSignOut) removeDrafts();
    onChange();
  });
  const onPageShow = ({ persisted }: PageTransitionEvent) => {
    if (persisted) onChange();
  };
  addEventListener("pageshow", onPageShow);
  return () => {
    channel.close();
    removeEventListener("pageshow", onPageShow);
  };
}
