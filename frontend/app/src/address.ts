import { useCallback, useSyncExternalStore } from "react";

const MOVED = "sluicegate:moved";
const CHAT_ID = /^[A-Za-z0-9._:-]{1,128}$/;

const fresh = new Set<string>();

/** Whether a chat was begun in this page, so that no server needs to be asked for it. */
export function isFreshChat(id: string): boolean {
  return fresh.has(id);
}

/** The chat is the server's now; whoever opens it again asks there. */
export function noteWritten(id: string): void {
  fresh.delete(id);
}

/** An id that nothing else has. Not `randomUUID`: browsers have that over HTTPS and on this machine only. */
export function newId(): string {
  const numbers = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(numbers, (number) => number.toString(36)).join("-");
}

/** The id of a chat that nobody has written in. */
export function newChatId(): string {
  const id = newId();
  fresh.add(id);
  return id;
}

function named(): string | undefined {
  const id = new URLSearchParams(location.search).get("chat") ?? "";
  return CHAT_ID.test(id) ? id : undefined;
}

function current(): string {
  const known = named();
  if (known !== undefined) return known;
  const id = newChatId();
  // The address names the chat at once, so that a reload at any moment finds it again.
  history.replaceState(null, "", `?chat=${id}`);
  return id;
}

function subscribe(changed: () => void): () => void {
  addEventListener("popstate", changed);
  addEventListener(MOVED, changed);
  return () => {
    removeEventListener("popstate", changed);
    removeEventListener(MOVED, changed);
  };
}

/** The chat that the address names, and how to go to another. */
export function useChatId(): readonly [string, (id: string) => void] {
  const id = useSyncExternalStore(subscribe, current);
  const open = useCallback((chat: string) => {
    history.pushState(null, "", `?chat=${encodeURIComponent(chat)}`);
    dispatchEvent(new Event(MOVED));
  }, []);
  return [id, open];
}
