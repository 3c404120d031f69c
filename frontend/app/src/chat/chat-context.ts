import { createContext, use } from "react";
import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import type { CallNumbers } from "../thread/call-numbers.ts";
import type { ToolProgress } from "./tool-progress.ts";
import type { Conversation } from "./use-conversation.ts";

/** The state and the actions of the chat for its messages; it does not change while text streams. */
export interface ChatContextValue
  extends Pick<
    Conversation,
    | "addOutput"
    | "decide"
    | "decisions"
    | "edit"
    | "isBusy"
    | "isContinuing"
    | "isLive"
    | "isSpoken"
    | "regenerate"
  > {
  readonly chatId: string;
  readonly toolProgress: ToolProgress;
  readonly callNumbers: CallNumbers;
  readonly requests: readonly ApprovalRequest[];
  /** Whether the messages were replaced: nothing in them can be answered. */
  readonly isReadOnly?: boolean;
}

export const ChatContext = createContext<ChatContextValue | undefined>(undefined);

/** The context of the chat; throws an `Error` outside of one. */
export function useChatContext(): ChatContextValue {
  const value = use(ChatContext);
  if (value === undefined) throw new Error("A message is rendered outside of a chat.");
  return value;
}
