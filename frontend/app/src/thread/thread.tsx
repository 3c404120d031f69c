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
import { loadSuggestions } from "../api.ts";
import type { Conversation } from "../chat/conversation.ts";
import { ArrowDown } from "../components/icons.tsx";
import { AssistantMessage } from "./assistant-message.tsx";
import { useMessageWindow } from "./message-window.ts";
import { UserMessage } from "./user-message.tsx";

/** The number of suggestions that are shown before they are expanded. */
const INITIAL_COUNT = 8;

const COMPONENTS = { UserMessage, AssistantMessage };

function Messages() {
  const ids = useMessageWindow(unstable_useThreadMessageIds());
  return ids.map((id) => (
    <ThreadPrimitive.Unstable_MessageById key={id} messageId={id} components={COMPONENTS} />
  ));
}

function Suggestions({ onChoose }: { readonly onChoose: (text: string) => void }) {
  const [suggestions, setSuggestions] = useState<readonly string[]>([]);
  const [isExpanded, setExpanded] = useState(false);
  useEffect(() => {
    loadSuggestions().then(setSuggestions, () => {});
  }, []);
  if (suggestions.length === 0) return null;
  const shown = isExpanded ? suggestions : suggestions.slice(0, INITIAL_COUNT);
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
          classNames={{ label: "wrap" }}
          onClick={() => onChoose(text)}
        >
          {text}
        </Button>
      ))}
      {shown.length < suggestions.length && (
        <Button variant="subtle" size="compact-md" fz="sm" onClick={() => setExpanded(true)}>
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
          What should the agent do?
        </Title>
        <Text c="dimmed" ta="center">
          Tools that change something wait for your approval.
        </Text>
        <Suggestions onChoose={onChoose} />
        {children}
      </Stack>
    </Center>
  );
}

function Problem({ conversation }: { readonly conversation: Conversation }) {
  const { problem, dismissProblem, retry, chat, isBusy } = conversation;
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
      onClose={dismissProblem}
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm" className="literal">
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

/** The messages of the chat; they scroll with a streaming answer while the end is visible. */
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
          className="scroll-to-bottom"
          variant="default"
          radius="xl"
          size="lg"
          aria-label="Go to the newest message"
        >
          <ArrowDown />
        </ActionIcon>
      </ThreadPrimitive.ScrollToBottom>
    </ThreadPrimitive.Root>
  );
}
