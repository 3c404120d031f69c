import { createContext, use } from "react";
import type { ApprovalRequest } from "../approvals/request.ts";
import type { CallNotes } from "./call-notes.ts";
import type { Conversation } from "./conversation.ts";

/** What a drawn message needs beside itself; changes seldom, never with a piece of text. */
export interface Around
  extends Pick<Conversation, "answer" | "decide" | "edit" | "isBusy" | "regenerate"> {
  readonly notes: CallNotes;
  readonly requests: readonly ApprovalRequest[];
}

export const AroundContext = createContext<Around | undefined>(undefined);

/** What surrounds the message that is being drawn. */
export function useAround(): Around {
  const around = use(AroundContext);
  if (around === undefined) throw new Error("A message is drawn outside of a chat.");
  return around;
}
