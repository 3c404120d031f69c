import { useQuery } from "@tanstack/react-query";
import type { UIMessage } from "ai";
import { useState } from "react";
import { isNewChat } from "../new-chats.ts";
import { takeInitialLoad } from "./initial-load.ts";
import { loadMessages } from "./stored-messages.ts";

/** The state of a chat that is being loaded. */
export type LoadState =
  | { readonly state: "loading" }
  | {
      readonly state: "open";
      readonly messages: readonly UIMessage[];
      /** Whether the server has died during the last answer. */
      readonly isInterrupted: boolean;
    }
  | { readonly state: "failed"; readonly error: unknown };

/** The stored messages of a chat, and a function that loads them again after a failure. */
export function useStoredMessages(id: string): readonly [LoadState, () => void] {
  const [isNew] = useState(() => isNewChat(id));
  const [initialLoad] = useState(() => takeInitialLoad(id));
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ["messages", id],
    queryFn: () => initialLoad?.take() ?? loadMessages(id),
    initialData: initialLoad?.stored,
    enabled: !isNew,
    // The open chat has its own messages; they are loaded each time that it is opened.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const retry = () => void refetch();
  if (isNew) return [{ state: "open", messages: [], isInterrupted: false }, retry];
  if (data !== undefined) return [{ state: "open", ...data }, retry];
  return [isFetching ? { state: "loading" } : { state: "failed", error }, retry];
}
