import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { type ChatSummary, deleteChat, errorMessage, renameChat } from "../api.ts";
import { Dialog } from "../components/dialog.tsx";
import { VisibleText } from "../components/values.tsx";
import { Grants } from "./grants.tsx";

const MAX_TITLE = 200;

interface ChatSettingsProps {
  readonly chat: ChatSummary;
  readonly onClose: () => void;
  readonly onRenamed: () => void;
  readonly onDeleted: () => void;
}

/** A dialog to rename a chat, withdraw its grants, or delete it after a confirmation. */
export function ChatSettings({ chat, onClose, onRenamed, onDeleted }: ChatSettingsProps) {
  const [title, setTitle] = useState(chat.title);
  const [isConfirming, setConfirming] = useState(false);
  const [problem, setProblem] = useState<string>();
  const attempt = async (action: () => Promise<void>, onDone: () => void) => {
    try {
      await action();
      onDone();
      onClose();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  const rename = (event: FormEvent) => {
    event.preventDefault();
    void attempt(() => renameChat(chat.id, title.trim()), onRenamed);
  };
  return (
    <Dialog title="Chat settings" onClose={onClose}>
      <Stack gap="lg">
        <form onSubmit={rename}>
          <Stack gap="xs">
            <TextInput
              label="Title"
              data-autofocus
              maxLength={MAX_TITLE}
              value={title}
              error={problem}
              onChange={(event) => setTitle(event.currentTarget.value)}
            />
            <Group justify="flex-end">
              <Button type="submit" disabled={title.trim() === ""}>
                Rename
              </Button>
            </Group>
          </Stack>
        </form>
        <Grants chat={chat.id} />
        {isConfirming ? (
          <Stack gap="xs">
            <Text size="sm">
              Delete “<VisibleText text={chat.title} />” for good, with all its messages?
            </Text>
            <Group justify="flex-end">
              <Button variant="default" onClick={() => setConfirming(false)}>
                Keep it
              </Button>
              <Button
                color="danger"
                onClick={() => void attempt(() => deleteChat(chat.id), onDeleted)}
              >
                Delete for good
              </Button>
            </Group>
          </Stack>
        ) : (
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setConfirming(true)}>
              Delete
            </Button>
          </Group>
        )}
      </Stack>
    </Dialog>
  );
}
