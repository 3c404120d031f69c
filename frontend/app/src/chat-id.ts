import { useCallback, useSyncExternalStore } from "react";

const CHAT_CHANGED = "sluicegate:chat-changed";
const CHAT_ID = /^[A-Za-z0-9._:-]{1,128}$/;

const newChats = new Set<string>();

/** Whether a chat was created in this page and is not stored on the server yet. */
export function isNewChat(id: string): boolean {
  return newChats.has(id);
}

/** Record that the server stores the chat, so that it is loaded when it is opened again. */
export function markChatAsSaved(id: string): void {
  newChats.delete(id);
}

/** Create a unique id. `randomUUID` is available in secure contexts only. */
export function createId(): string {
  const numbers = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(numbers, (number) => number.toString(36)).join("-");
}

/** The id of a new chat; that of the last one while it is empty, so that its draft is found. */
export function createChatId(): string {
  for (const id of newChats) return id;
  const id = createId();
  newChats.add(id);
  return id;
}

/** The id of the chat in the URL, if there is a valid one. */
export function chatIdOfUrl(): string | undefined {
  const id = new URLSearchParams(location.search).get("chat") ?? "";
  return CHAT_ID.test(id) ? id : undefined;
}

function currentChatId(): string {
  const idOfUrl = chatIdOfUrl();
  if (idOfUrl !== undefined) return idOfUrl;
  const id = createChatId();
  // The URL has the id from the start, so that a reload opens the same chat.
  history.replaceState(null, "", `?chat=${id}`);
  return id;
}

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  addEventListener(CHAT_CHANGED, listener);
  return () => {
    removeEventListener("popstate", listener);
    removeEventListener(CHAT_CHANGED, listener);
  };
}

/** The id of the chat in the URL, and a function that navigates to another chat. */
export function useChatId(): readonly [string, (id: string) => void] {
  const id = useSyncExternalStore(subscribe, currentChatId);
  const navigate = useCallback((chat: string) => {
    history.pushState(null, "", `?chat=${encodeURIComponent(chat)}`);
    dispatchEvent(new Event(CHAT_CHANGED));
  }, []);
  return [id, navigate];
}
