import { MessagePrimitive } from "@assistant-ui/react";
import { ActionIcon, Button, Group, Paper, Stack, Textarea } from "@mantine/core";
import type { UIMessage } from "ai";
import { type KeyboardEvent, useState } from "react";
import { useChatContext } from "../chat/chat-context.ts";
import { textOf, useMessage } from "../chat/message-runtime.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { Pencil } from "../components/icons.tsx";
import { PlainText } from "../markdown/plain-text.tsx";
import { FilePart } from "./file-part.tsx";

interface EditorProps {
  readonly message: UIMessage;
  readonly onClose: () => void;
}

function Editor({ message, onClose }: EditorProps) {
  const { edit } = useChatContext();
  const [text, setText] = useState(() => textOf(message));
  const send = () => {
    onClose();
    edit(message.id, text.trim());
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  return (
    <Stack gap="xs" w="100%" onKeyDown={cancelOnEscape}>
      <Textarea
        aria-label="Edit your message"
        data-autofocus
        autosize
        maxRows={12}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Group gap="xs" justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button disabled={text.trim() === ""} onClick={send}>
          Send
        </Button>
      </Group>
    </Stack>
  );
}

function Content({ message }: { readonly message: UIMessage }) {
  return (
    <Paper bg="var(--mantine-color-default-hover)" px="md" py="xs" radius="lg" maw="85%">
      <Stack gap="xs">
        {message.parts.map((part, index) => {
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sent message do not move.
          if (part.type === "file") return <FilePart key={index} part={part} />;
          if (part.type !== "text") return null;
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sent message do not move.
          return <PlainText key={index} text={part.text} />;
        })}
      </Stack>
    </Paper>
  );
}

/** A user message: its text, rendered literally, and its files. */
export function UserMessage() {
  const message = useMessage();
  const { isBusy } = useChatContext();
  const [isEditing, setEditing] = useState(false);
  if (message === undefined) return null;
  return (
    <MessagePrimitive.Root asChild>
      <Stack component="article" gap={2} align="flex-end" className="message" aria-label="You">
        {isEditing ? (
          <Editor message={message} onClose={() => setEditing(false)} />
        ) : (
          <>
            <Content message={message} />
            <Group gap={0}>
              {!isBusy && (
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label="Edit your message"
                  onClick={() => setEditing(true)}
                >
                  <Pencil size={16} />
                </ActionIcon>
              )}
              <CopyButton text={textOf(message)} label="Copy your message" />
            </Group>
          </>
        )}
      </Stack>
    </MessagePrimitive.Root>
  );
}
