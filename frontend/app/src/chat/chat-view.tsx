import { AssistantRuntimeProvider } from "@assistant-ui/react";
import { Alert, Button, Center, Loader, Stack, Text, VisuallyHidden } from "@mantine/core";
import type { UIMessage } from "ai";
import { lazy, Suspense, useEffect, useMemo } from "react";
import { RequestRefused } from "sluicegate";
import { noteWritten } from "../address.ts";
import { announcement } from "../approvals/approval-group.tsx";
import type { Choices } from "../choices.ts";
import { Composer } from "../composer/composer.tsx";
import { sentenceOf } from "../server.ts";
import { Thread } from "../thread/thread.tsx";
import { type Around, AroundContext } from "./context.ts";
import { type Conversation, useConversation } from "./conversation.ts";
import { SignIn } from "./sign-in.tsx";
import { useStoredChat } from "./use-stored-chat.ts";

const Inspector = lazy(async () => {
  const { Inspector } = await import("../inspector/inspector.tsx");
  return { default: Inspector };
});

interface ChatViewProps {
  readonly id: string;
  readonly choices: Choices;
  readonly onChanged: () => void;
  readonly isInspecting: boolean;
  readonly onEndInspecting: () => void;
}

/** What a message needs around it, the same object as long as none of it changes. */
function useAroundOf(conversation: Conversation): Around {
  const { answer, decide, edit, isBusy, notes, regenerate, requests } = conversation;
  return useMemo(
    () => ({ answer, decide, edit, isBusy, notes, regenerate, requests }),
    [answer, decide, edit, isBusy, notes, regenerate, requests],
  );
}

function useTitle(count: number) {
  useEffect(() => {
    document.title = count > 0 ? `(${count}) sluicegate` : "sluicegate";
  }, [count]);
}

function OpenChat(props: ChatViewProps & { readonly messages: readonly UIMessage[] }) {
  const { id, messages, choices, onChanged, isInspecting, onEndInspecting } = props;
  const conversation = useConversation({ id, messages, choices, onChanged });
  const { chat, log, requests, runtime, voice } = conversation;
  const around = useAroundOf(conversation);
  const isWritten = chat.messages.length > 0;
  useEffect(() => {
    if (isWritten) noteWritten(id);
  }, [id, isWritten]);
  useTitle(requests.filter(({ answer }) => answer === undefined).length);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <AroundContext value={around}>
        <VisuallyHidden role="status" aria-live="polite">
          {announcement(requests)}
        </VisuallyHidden>
        <Thread conversation={conversation} />
        <Composer
          isBusy={conversation.isBusy}
          isStopping={chat.isStopping}
          isWaiting={requests.length > 0}
          unsent={chat.refusal?.unsent}
          voice={voice}
        />
        {isInspecting && (
          <Suspense>
            <Inspector log={log} chatId={id} onClose={onEndInspecting} />
          </Suspense>
        )}
      </AroundContext>
    </AssistantRuntimeProvider>
  );
}

/** One chat, from its address to its last word. */
export function ChatView(props: ChatViewProps) {
  const [opening, again] = useStoredChat(props.id);
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
              <Text size="sm">{sentenceOf(opening.error)}</Text>
              <Button size="compact-sm" variant="default" onClick={again}>
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
