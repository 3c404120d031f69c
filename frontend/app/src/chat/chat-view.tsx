import { useEffect, useMemo } from "react";
import { RequestRefused } from "sluicegate";
import { useAnnouncements } from "../approvals/use-announcements.ts";
import { useFocusAfterDecision } from "../approvals/use-focus-after-decision.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { LabelledSpinner } from "../components/spinner.tsx";
import { Composer } from "../composer/composer.tsx";
import { errorMessage } from "../error-message.ts";
import { markChatAsSaved } from "../new-chats.ts";
import type { Preferences } from "../preferences.ts";
import { useChatSync } from "../sync/use-chat-sync.ts";
import type { SubscribeToServerEvents } from "../sync/use-sync.ts";
import { Thread } from "../thread/thread.tsx";
import { ChatContext, type ChatContextValue } from "./chat-context.ts";
import { type Conversation, useConversation } from "./use-conversation.ts";
import { type LoadState, useStoredMessages } from "./use-stored-messages.ts";

interface ChatViewProps {
  readonly id: string;
  readonly preferences: Preferences;
  /** Replaces the browser's own. */
  readonly fetch?: typeof fetch | undefined;
  readonly onChanged: () => void;
  readonly subscribe: SubscribeToServerEvents;
}

/** The context value of a conversation; the same object until one of its properties changes. */
function useChatContextValue(conversation: Conversation): ChatContextValue {
  const { addOutput, callNumbers, decide, decisions, edit, isBusy, isContinuing } = conversation;
  const { id: chatId, isLive, isSpoken, regenerate, requests, toolProgress } = conversation;
  return useMemo(
    () => ({
      addOutput,
      callNumbers,
      chatId,
      decide,
      decisions,
      edit,
      isBusy,
      isContinuing,
      isLive,
      isSpoken,
      regenerate,
      requests,
      toolProgress,
    }),
    [
      addOutput,
      callNumbers,
      chatId,
      decide,
      decisions,
      edit,
      isBusy,
      isContinuing,
      isLive,
      isSpoken,
      regenerate,
      requests,
      toolProgress,
    ],
  );
}

type OpenChatProps = ChatViewProps & Extract<LoadState, { state: "open" }>;

function OpenChat(props: OpenChatProps) {
  const { id, messages, isInterrupted, preferences, fetch, onChanged, subscribe } = props;
  const options = { id, messages, isInterrupted, preferences, fetch, onChanged };
  const conversation = useConversation(options);
  const { chat, requests } = conversation;
  useChatSync({ id, chat, isBusy: conversation.isBusy, subscribe });
  const context = useChatContextValue(conversation);
  const hasMessages = chat.messages.length > 0;
  useEffect(() => {
    if (hasMessages) markChatAsSaved(id);
  }, [id, hasMessages]);
  useFocusAfterDecision();
  const announcement = useAnnouncements(chat.messages, requests, conversation.toolProgress);
  return (
    <ChatContext value={context}>
      <div className="visually-hidden" role="status" aria-live="polite">
        {announcement}
      </div>
      <Thread conversation={conversation} />
      <Composer
        id={id}
        isBusy={conversation.isBusy}
        isReconnecting={chat.isReconnecting}
        isStopping={chat.isStopping}
        hasPending={requests.length > 0}
        open={conversation.open}
        problem={conversation.problem}
        mustQueue={conversation.mustQueue}
        unsent={chat.refusal?.unsent}
        voice={conversation.voice}
        send={conversation.send}
        stop={conversation.stop}
      />
    </ChatContext>
  );
}

/** A chat that the server refuses without a session; the page asks for it, once for all it shows. */
function SignedOut({ onChanged }: Pick<ChatViewProps, "onChanged">) {
  useEffect(() => onChanged(), [onChanged]);
  return <Loading />;
}

function Loading() {
  return (
    <div className="centered">
      <LabelledSpinner label="Loading the chat" />
    </div>
  );
}

/** The chat with an id: loaded first, then open. */
export function ChatView(props: ChatViewProps) {
  const [opening, retry] = useStoredMessages(props.id);
  switch (opening.state) {
    case "loading":
      return <Loading />;
    case "failed":
      if (opening.error instanceof RequestRefused && opening.error.status === 401) {
        return <SignedOut onChanged={props.onChanged} />;
      }
      return (
        <div className="centered">
          <Alert tone="danger" isAnnounced title="The chat could not be opened">
            <p className="text-sm">{errorMessage(opening.error)}</p>
            <div>
              <Button size="sm" onClick={retry}>
                Try again
              </Button>
            </div>
          </Alert>
        </div>
      );
    case "open":
      return <OpenChat {...props} {...opening} />;
  }
}
