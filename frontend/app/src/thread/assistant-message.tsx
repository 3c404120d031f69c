import { MessagePrimitive, useAuiState } from "@assistant-ui/react";
import { ActionIcon, Group, Loader, Stack, Text } from "@mantine/core";
import type { UIMessage } from "ai";
import { isRecord } from "../approvals/approval-requests.ts";
import { useChatContext } from "../chat/chat-context.ts";
import { textOf, useMessage } from "../chat/message-runtime.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { Refresh } from "../components/icons.tsx";
import { formatCount, visibleName } from "../components/visible-text.ts";
import { MessageParts } from "./message-parts.tsx";

/** The model and the token usage of an answer. */
function Metadata({ message }: { readonly message: UIMessage }) {
  if (!isRecord(message.metadata)) return null;
  const { model, usage } = message.metadata;
  const tokens = isRecord(usage) ? usage.totalTokens : undefined;
  const items = [
    typeof model === "string" && visibleName(model),
    typeof tokens === "number" && `${formatCount(tokens)} tokens`,
  ].filter(Boolean);
  return (
    <Text size="xs" c="dimmed">
      {items.join(" · ")}
    </Text>
  );
}

function Actions({ message }: { readonly message: UIMessage }) {
  const { regenerate } = useChatContext();
  const isLast = useAuiState((state) => state.message.isLast);
  const text = textOf(message);
  return (
    <Group gap={0}>
      {text !== "" && <CopyButton text={text} label="Copy the answer" />}
      {isLast && (
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label="Answer again"
          onClick={() => regenerate(message.id)}
        >
          <Refresh size={16} />
        </ActionIcon>
      )}
      <Metadata message={message} />
    </Group>
  );
}

/** An assistant message with its actions. */
export function AssistantMessage() {
  const message = useMessage();
  const { isBusy, requests } = useChatContext();
  const isLast = useAuiState((state) => state.message.isLast);
  const isStreaming = isLast && isBusy;
  return (
    <MessagePrimitive.Root asChild>
      <Stack
        component="article"
        gap="sm"
        className="message"
        aria-label="Assistant"
        aria-busy={isStreaming}
      >
        {message !== undefined && <MessageParts message={message} />}
        {isStreaming && <Loader type="dots" size="sm" aria-label="Answering" role="img" />}
        {message !== undefined && !isStreaming && !(isLast && requests.length > 0) && (
          <Actions message={message} />
        )}
      </Stack>
    </MessagePrimitive.Root>
  );
}
