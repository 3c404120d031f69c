import { ActionIcon, Badge, Button, Group, NavLink, Stack, Text, TextInput } from "@mantine/core";
import { type MouseEvent, useState } from "react";
import type { ChatSummary } from "../api.ts";
import { Pencil, Plus } from "../components/icons.tsx";
import { visibleName } from "../components/visible-text.ts";
import { ChatSettings } from "./chat-settings.tsx";
import type { Chats } from "./use-chats.ts";

interface RowProps {
  readonly chat: ChatSummary;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  readonly onSettings: () => void;
}

function Row({ chat, isOpen, onOpen, onSettings }: RowProps) {
  const title = visibleName(chat.title) || "Without a title";
  const count = chat.pendingApprovals;
  const onClick = (event: MouseEvent) => {
    // The browser opens a link in another tab or window itself.
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onOpen();
  };
  return (
    <Group component="li" gap={4} wrap="nowrap">
      <NavLink
        className="grow"
        bdrs="sm"
        title={title}
        href={`?chat=${encodeURIComponent(chat.id)}`}
        label={title}
        active={isOpen}
        variant="light"
        noWrap
        {...(isOpen && { "aria-current": "page" as const })}
        rightSection={
          count > 0 && (
            <Badge aria-label={count === 1 ? "1 approval waits" : `${count} approvals wait`}>
              {count}
            </Badge>
          )
        }
        onClick={onClick}
      />
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={`Rename or delete: ${title}`}
        onClick={onSettings}
      >
        <Pencil size={16} />
      </ActionIcon>
    </Group>
  );
}

interface ChatListProps {
  readonly chats: Chats;
  readonly query: string;
  readonly onQuery: (query: string) => void;
  readonly openId: string;
  readonly onOpen: (id: string) => void;
  readonly onNew: () => void;
}

/** The list of chats, with search and the settings of each chat. */
export function ChatList({ chats, query, onQuery, openId, onOpen, onNew }: ChatListProps) {
  const [settingsOf, setSettingsOf] = useState<ChatSummary>();
  return (
    <>
      <Stack gap="xs" p="sm">
        <Button leftSection={<Plus size={16} />} onClick={onNew}>
          New chat
        </Button>
        <TextInput
          type="search"
          aria-label="Search chats"
          placeholder="Search chats"
          value={query}
          onChange={(event) => onQuery(event.currentTarget.value)}
        />
      </Stack>
      <Stack component="ul" gap={2} px="sm" py={0} className="list" aria-label="Chats">
        {chats.chats.map((chat) => (
          <Row
            key={chat.id}
            chat={chat}
            isOpen={chat.id === openId}
            onOpen={() => onOpen(chat.id)}
            onSettings={() => setSettingsOf(chat)}
          />
        ))}
      </Stack>
      {chats.problem !== undefined && (
        <Text size="sm" c="error" px="sm" role="alert">
          {chats.problem}
        </Text>
      )}
      {chats.problem === undefined && chats.chats.length === 0 && query !== "" && (
        <Text size="sm" c="dimmed" px="sm">
          No chat has this in its title.
        </Text>
      )}
      {chats.next !== null && (
        <Button variant="subtle" m="sm" onClick={() => void chats.loadMore()}>
          Show more
        </Button>
      )}
      {settingsOf !== undefined && (
        <ChatSettings
          chat={settingsOf}
          onClose={() => setSettingsOf(undefined)}
          onRenamed={() => void chats.refresh()}
          onDeleted={() => {
            void chats.refresh();
            if (settingsOf.id === openId) onNew();
          }}
        />
      )}
    </>
  );
}
