import { MessagePrimitive, useAuiState } from "@assistant-ui/react";
import { ActionIcon, Group, Loader, Stack, Text } from "@mantine/core";
import type { UIMessage } from "ai";
import { isRecord } from "../approvals/request.ts";
import { useAround } from "../chat/context.ts";
import { textOf, useMessage } from "../chat/message-runtime.ts";
import { CopyButton } from "../shown/copy-button.tsx";
import { counted } from "../shown/counted.ts";
import { Again } from "../shown/icons.tsx";
import { visibleName } from "../shown/visible-text.ts";
import { AnswerParts } from "./answer-parts.tsx";

/** What the server says of the answer itself: the model and what was used. */
function Facts({ message }: { readonly message: UIMessage }) {
  if (!isRecord(message.metadata)) return null;
  const { model, usage } = message.metadata;
  const tokens = isRecord(usage) ? usage.totalTokens : undefined;
  const facts = [
    typeof model === "string" && visibleName(model),
    typeof tokens === "number" && `${counted(tokens)} tokens`,
  ].filter(Boolean);
  return (
    <Text size="xs" c="dimmed">
      {facts.join(" · ")}
    </Text>
  );
}

function Actions({ message }: { readonly message: UIMessage }) {
  const { regenerate } = useAround();
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
          <Again size={16} />
        </ActionIcon>
      )}
      <Facts message={message} />
    </Group>
  );
}

/** An answer, with everything that was asked and done for it. */
export function AssistantMessage() {
  const message = useMessage();
  const { isBusy, requests } = useAround();
  const isLast = useAuiState((state) => state.message.isLast);
  const isComing = isLast && isBusy;
  return (
    <MessagePrimitive.Root asChild>
      <Stack
        component="article"
        gap="sm"
        className="message"
        aria-label="Assistant"
        aria-busy={isComing}
      >
        {message !== undefined && <AnswerParts message={message} />}
        {isComing && <Loader type="dots" size="sm" aria-label="Answering" role="img" />}
        {message !== undefined && !isComing && !(isLast && requests.length > 0) && (
          <Actions message={message} />
        )}
      </Stack>
    </MessagePrimitive.Root>
  );
}
