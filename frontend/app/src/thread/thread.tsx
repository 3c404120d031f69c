import { ThreadPrimitive, unstable_useThreadMessageIds } from "@assistant-ui/react";
import { ActionIcon, Alert, Button, Center, Group, Stack, Text, Title } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Conversation } from "../chat/conversation.ts";
import { loadSuggestions } from "../server.ts";
import { Down } from "../shown/icons.tsx";
import { AssistantMessage } from "./assistant-message.tsx";
import { useWindow } from "./message-window.ts";
import { UserMessage } from "./user-message.tsx";

const COMPONENTS = { UserMessage, AssistantMessage };

function Messages() {
  const ids = useWindow(unstable_useThreadMessageIds());
  return ids.map((id) => (
    <ThreadPrimitive.Unstable_MessageById key={id} messageId={id} components={COMPONENTS} />
  ));
}

function Welcome({ onChoose }: { readonly onChoose: (text: string) => void }) {
  const [suggestions, setSuggestions] = useState<readonly string[]>([]);
  useEffect(() => {
    loadSuggestions().then(setSuggestions, () => {});
  }, []);
  return (
    <Center mih="100%" p="md">
      <Stack align="center" gap="lg" maw={640}>
        <Title order={2} size="h3" ta="center">
          What shall the agent do?
        </Title>
        <Text c="dimmed" ta="center">
          Tools that change something wait for your yes.
        </Text>
        {suggestions.length > 0 && (
          <Group component="section" gap="xs" justify="center" aria-label="Suggestions">
            {suggestions.map((text) => (
              <Button
                key={text}
                variant="default"
                size="compact-md"
                fw={400}
                maw="100%"
                onClick={() => onChoose(text)}
              >
                {text}
              </Button>
            ))}
          </Group>
        )}
      </Stack>
    </Center>
  );
}

function Problem({ conversation }: { readonly conversation: Conversation }) {
  const { problem, forget, retry, chat, isBusy } = conversation;
  if (problem === undefined || isBusy) return null;
  const canRetry = chat.error !== undefined && chat.refusal === undefined;
  return (
    <Alert
      color="red"
      variant="outline"
      role="alert"
      title="That did not work"
      withCloseButton={chat.error === undefined && chat.refusal === undefined}
      closeButtonLabel="Close"
      onClose={forget}
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm" className="as-written">
          {problem}
        </Text>
        {canRetry && (
          <Button size="compact-sm" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** The messages of the chat, which follow what comes in as long as the person is at the end. */
export function Thread({ conversation }: { readonly conversation: Conversation }) {
  const { chat } = conversation;
  const isEmpty = chat.messages.length === 0;
  const choose = (text: string) => void chat.sendMessage({ text });
  return (
    <ThreadPrimitive.Root className="thread">
      <ThreadPrimitive.Viewport
        className="messages"
        role="log"
        aria-label="Conversation"
        aria-live="off"
        tabIndex={0}
      >
        {isEmpty ? (
          <Welcome onChoose={choose} />
        ) : (
          <Stack gap="lg" className="column" py="md">
            <Messages />
            <Problem conversation={conversation} />
          </Stack>
        )}
      </ThreadPrimitive.Viewport>
      <ThreadPrimitive.ScrollToBottom asChild>
        <ActionIcon
          className="to-end"
          variant="default"
          radius="xl"
          size="lg"
          aria-label="Go to the newest message"
        >
          <Down />
        </ActionIcon>
      </ThreadPrimitive.ScrollToBottom>
    </ThreadPrimitive.Root>
  );
}
