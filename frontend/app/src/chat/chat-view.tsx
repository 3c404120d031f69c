import { AssistantRuntimeProvider } from "@assistant-ui/react";
import { Alert, Button, Center, Loader, Stack, Text, VisuallyHidden } from "@mantine/core";
import type { UIMessage } from "ai";
import { lazy, Suspense, useEffect, useMemo } from "react";
import { RequestRefused } from "sluicegate";
import { errorMessage } from "../api.ts";
import { announcement } from "../approvals/approval-group.tsx";
import { markChatAsSaved } from "../chat-id.ts";
import { Composer } from "../composer/composer.tsx";
import type { Preferences } from "../preferences.ts";
import { Thread } from "../thread/thread.tsx";
import { ChatContext, type ChatContextValue } from "./chat-context.ts";
import { type Conversation, useConversation } from "./conversation.ts";
import { SignIn } from "./sign-in.tsx";
import { useStoredChat } from "./use-stored-chat.ts";

const Inspector = lazy(async () => {
  const { Inspector } = await import("../inspector/inspector.tsx");
  return { default: Inspector };
});

interface ChatViewProps {
  readonly id: string;
  readonly preferences: Preferences;
  readonly onChanged: () => void;
  readonly isInspecting: boolean;
  readonly onCloseInspector: () => void;
}

/** The context value of a conversation; the same object until one of its properties changes. */
function useChatContextValue(conversation: Conversation): ChatContextValue {
  const { addOutput, decide, edit, isBusy, regenerate, requests, toolProgress } = conversation;
  return useMemo(
    () => ({ addOutput, decide, edit, isBusy, regenerate, requests, toolProgress }),
    [addOutput, decide, edit, isBusy, regenerate, requests, toolProgress],
  );
}

function useTitle(count: number) {
  useEffect(() => {
    document.title = count > 0 ? `(${count}) sluicegate` : "sluicegate";
  }, [count]);
}

function OpenChat(props: ChatViewProps & { readonly messages: readonly UIMessage[] }) {
  const { id, messages, preferences, onChanged, isInspecting, onCloseInspector } = props;
  const conversation = useConversation({ id, messages, preferences, onChanged });
  const { chat, log, requests, runtime, voice } = conversation;
  const context = useChatContextValue(conversation);
  const hasMessages = chat.messages.length > 0;
  useEffect(() => {
    if (hasMessages) markChatAsSaved(id);
  }, [id, hasMessages]);
  useTitle(requests.filter(({ decision }) => decision === undefined).length);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ChatContext value={context}>
        <VisuallyHidden role="status" aria-live="polite">
          {announcement(requests)}
        </VisuallyHidden>
        <Thread conversation={conversation} />
        <Composer
          isBusy={conversation.isBusy}
          isStopping={chat.isStopping}
          hasPending={requests.length > 0}
          unsent={chat.refusal?.unsent}
          voice={voice}
        />
        {isInspecting && (
          <Suspense>
            <Inspector log={log} chatId={id} onClose={onCloseInspector} />
          </Suspense>
        )}
      </ChatContext>
    </AssistantRuntimeProvider>
  );
}

/** The chat with an id: loaded first, then open. */
export function ChatView(props: ChatViewProps) {
  const [opening, retry] = useStoredChat(props.id);
  switch (opening.state) {
    case "loading":
      return (
        <Center h="100%">
          <Loader aria-label="Loading the chat" role="img" />
        </Center>
      );
    case "failed":
      if (opening.error instanceof RequestRefused && opening.error.status === 401) {
        return <SignIn />;
      }
      return (
        <Center h="100%" p="md">
          <Alert color="red" variant="outline" role="alert" title="The chat could not be opened">
            <Stack gap="xs" align="flex-start">
              <Text size="sm">{errorMessage(opening.error)}</Text>
              <Button size="compact-sm" variant="default" onClick={retry}>
                Try again
              </Button>
            </Stack>
          </Alert>
        </Center>
      );
    case "open":
      return <OpenChat {...props} messages={opening.messages} />;
  }
}
