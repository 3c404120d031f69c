import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { type ChatSummary, deleteChat, renameChat, sentenceOf } from "../server.ts";
import { Dialog } from "../shown/dialog.tsx";
import { Visible } from "../shown/visible.tsx";
import { Grants } from "./grants.tsx";

const MAX_TITLE = 200;

interface ChatSettingsProps {
  readonly chat: ChatSummary;
  readonly onClose: () => void;
  readonly onRenamed: () => void;
  readonly onDeleted: () => void;
}

/** Rename a chat, or delete it after being asked once more. */
export function ChatSettings({ chat, onClose, onRenamed, onDeleted }: ChatSettingsProps) {
  const [title, setTitle] = useState(chat.title);
  const [isSure, setSure] = useState(false);
  const [problem, setProblem] = useState<string>();
  const attempt = async (work: () => Promise<void>, done: () => void) => {
    try {
      await work();
      done();
      onClose();
    } catch (error) {
      setProblem(sentenceOf(error));
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
        {isSure ? (
          <Stack gap="xs">
            <Text size="sm">
              Delete “<Visible text={chat.title} />” for good, with all its messages?
            </Text>
            <Group justify="flex-end">
              <Button variant="default" onClick={() => setSure(false)}>
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
            <Button variant="default" onClick={() => setSure(true)}>
              Delete
            </Button>
          </Group>
        )}
      </Stack>
    </Dialog>
  );
}
