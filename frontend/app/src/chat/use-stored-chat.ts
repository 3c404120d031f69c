import type { UIMessage } from "ai";
import { useEffect, useState } from "react";
import { RequestRefused } from "sluicegate";
import { request } from "../api.ts";
import { isNewChat } from "../chat-id.ts";

/** The state of a chat that is being loaded. */
export type LoadState =
  | { readonly state: "loading" }
  | { readonly state: "open"; readonly messages: readonly UIMessage[] }
  | { readonly state: "failed"; readonly error: unknown };

async function load(id: string): Promise<readonly UIMessage[]> {
  try {
    const response = await request(`/chats/${encodeURIComponent(id)}`);
    return ((await response.json()) as { messages: UIMessage[] }).messages;
  } catch (error) {
    // A chat is stored with its first message; before that it is unknown to the server.
    if (error instanceof RequestRefused && error.status === 404) return [];
    throw error;
  }
}

/** The stored messages of a chat, and a function that loads them again after a failure. */
export function useStoredChat(id: string): readonly [LoadState, () => void] {
  const [attempt, setAttempt] = useState(0);
  const [opening, setLoadState] = useState<LoadState>(() =>
    isNewChat(id) ? { state: "open", messages: [] } : { state: "loading" },
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt loads the same chat.
  useEffect(() => {
    if (isNewChat(id)) return;
    let isCancelled = false;
    load(id).then(
      (messages) => !isCancelled && setLoadState({ state: "open", messages }),
      (error) => !isCancelled && setLoadState({ state: "failed", error }),
    );
    return () => {
      isCancelled = true;
    };
  }, [id, attempt]);
  const retry = () => {
    setLoadState({ state: "loading" });
    setAttempt(attempt + 1);
  };
  return [opening, retry];
}
