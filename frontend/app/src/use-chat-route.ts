import { useCallback, useSyncExternalStore } from "react";
import { createChatId } from "./new-chats.ts";

const CHAT_CHANGED = "sluicegate:chat-changed";
const CHAT_ID = /^[A-Za-z0-9._:-]{1,128}$/;

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
