import { useQuery } from "@tanstack/react-query";
import type { UIMessage } from "ai";
import { useState } from "react";
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
  const [isNew] = useState(() => isNewChat(id));
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ["messages", id],
    queryFn: () => load(id),
    enabled: !isNew,
    // The open chat has its own messages; they are loaded each time that it is opened.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const retry = () => void refetch();
  if (isNew) return [{ state: "open", messages: [] }, retry];
  if (data !== undefined) return [{ state: "open", messages: data }, retry];
  return [isFetching ? { state: "loading" } : { state: "failed", error }, retry];
}
