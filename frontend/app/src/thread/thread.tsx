import { ThreadPrimitive, unstable_useThreadMessageIds } from "@assistant-ui/react";
import {
  ActionIcon,
  Alert,
  Button,
  Center,
  Group,
  Stack,
  Text,
  Title,
  VisuallyHidden,
} from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";
import type { Conversation } from "../chat/conversation.ts";
import { loadSuggestions } from "../server.ts";
import { Down } from "../shown/icons.tsx";
import { AssistantMessage } from "./assistant-message.tsx";
import { useWindow } from "./message-window.ts";
import { UserMessage } from "./user-message.tsx";

/** Suggestions that are shown before somebody asks for all of them. */
const FEW = 8;

const COMPONENTS = { UserMessage, AssistantMessage };

function Messages() {
  const ids = useWindow(unstable_useThreadMessageIds());
  return ids.map((id) => (
    <ThreadPrimitive.Unstable_MessageById key={id} messageId={id} components={COMPONENTS} />
  ));
}

function Suggestions({ onChoose }: { readonly onChoose: (text: string) => void }) {
  const [suggestions, setSuggestions] = useState<readonly string[]>([]);
  const [isWhole, setWhole] = useState(false);
  useEffect(() => {
    loadSuggestions().then(setSuggestions, () => {});
  }, []);
  if (suggestions.length === 0) return null;
  const shown = isWhole ? suggestions : suggestions.slice(0, FEW);
  return (
    <Group component="section" gap="xs" justify="center" aria-label="Suggestions">
      {shown.map((text) => (
        <Button
          key={text}
          variant="default"
          size="compact-md"
          fz="sm"
          fw={400}
          h="auto"
          maw="100%"
          py={4}
          lh={1.4}
          classNames={{ label: "wraps" }}
          onClick={() => onChoose(text)}
        >
          {text}
        </Button>
      ))}
      {shown.length < suggestions.length && (
        <Button variant="subtle" size="compact-md" fz="sm" onClick={() => setWhole(true)}>
          Show all
        </Button>
      )}
    </Group>
  );
}

interface WelcomeProps {
  readonly onChoose: (text: string) => void;
  readonly children: ReactNode;
}

function Welcome({ onChoose, children }: WelcomeProps) {
  return (
    <Center mih="100%" p="md">
      <Stack align="center" gap="lg" w="100%" maw={640}>
        <Title order={2} size="h3" ta="center">
          What shall the agent do?
        </Title>
        <Text c="dimmed" ta="center">
          Tools that change something wait for your yes.
        </Text>
        <Suggestions onChoose={onChoose} />
        {children}
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
          <Welcome onChoose={choose}>
            <Problem conversation={conversation} />
          </Welcome>
        ) : (
          <Stack gap="lg" className="column" py="md">
            <VisuallyHidden>
              <Title order={2}>Messages</Title>
            </VisuallyHidden>
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
