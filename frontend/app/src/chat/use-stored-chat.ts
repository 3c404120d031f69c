import type { UIMessage } from "ai";
import { useEffect, useState } from "react";
import { RequestRefused } from "sluicegate";
import { isFreshChat } from "../address.ts";
import { ask } from "../server.ts";

/** A chat as it is being opened. */
export type Opening =
  | { readonly state: "loading" }
  | { readonly state: "open"; readonly messages: readonly UIMessage[] }
  | { readonly state: "failed"; readonly error: unknown };

async function load(id: string): Promise<readonly UIMessage[]> {
  try {
    const response = await ask(`/chats/${encodeURIComponent(id)}`);
    return ((await response.json()) as { messages: UIMessage[] }).messages;
  } catch (error) {
    // A chat begins with its first message; until then nobody knows it.
    if (error instanceof RequestRefused && error.status === 404) return [];
    throw error;
  }
}

/** The messages of a chat, and how to try again. */
export function useStoredChat(id: string): readonly [Opening, () => void] {
  const [attempt, setAttempt] = useState(0);
  const [opening, setOpening] = useState<Opening>(() =>
    isFreshChat(id) ? { state: "open", messages: [] } : { state: "loading" },
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt loads the same chat.
  useEffect(() => {
    if (isFreshChat(id)) return;
    let isLeft = false;
    load(id).then(
      (messages) => !isLeft && setOpening({ state: "open", messages }),
      (error) => !isLeft && setOpening({ state: "failed", error }),
    );
    return () => {
      isLeft = true;
    };
  }, [id, attempt]);
  const again = () => {
    setOpening({ state: "loading" });
    setAttempt(attempt + 1);
  };
  return [opening, again];
}
