import { ActionIcon, AppShell, Burger, Group, Title } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useCallback, useState } from "react";
import { ChatView } from "./chat/chat-view.tsx";
import { SignIn } from "./chat/sign-in.tsx";
import { createChatId, useChatId } from "./chat-id.ts";
import { ChatList } from "./chats/chat-list.tsx";
import { useChats } from "./chats/use-chats.ts";
import { List } from "./components/icons.tsx";
import { usePreferences } from "./preferences.ts";
import { PreferencesPanel } from "./preferences-panel.tsx";

/** The page: the list of chats and the open chat. */
export function Page() {
  const [id, navigate] = useChatId();
  const [query, setQuery] = useState("");
  const [debouncedQuery] = useDebouncedValue(query, 200);
  const chats = useChats(debouncedQuery);
  const preferences = usePreferences();
  const [isNavOpen, nav] = useDisclosure(false);
  const [isInspecting, inspector] = useDisclosure(false);
  const { close } = nav;
  const openChat = useCallback(
    (chat: string) => {
      close();
      navigate(chat);
    },
    [close, navigate],
  );
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 290, breakpoint: "sm", collapsed: { mobile: !isNavOpen } }}
    >
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={isNavOpen}
              onClick={nav.toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={isNavOpen ? "Hide the chats" : "Show the chats"}
              aria-expanded={isNavOpen}
            />
            <Title order={1} size="h4">
              sluicegate
            </Title>
          </Group>
          <ActionIcon
            variant="default"
            size="lg"
            aria-label="Inspector"
            aria-pressed={isInspecting}
            onClick={inspector.toggle}
          >
            <List />
          </ActionIcon>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar aria-label="Chats">
        <AppShell.Section grow className="scroll">
          <ChatList
            chats={chats}
            query={query}
            onQuery={setQuery}
            openId={id}
            onOpen={openChat}
            onNew={() => openChat(createChatId())}
          />
        </AppShell.Section>
        <AppShell.Section>
          <PreferencesPanel preferences={preferences} />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main className="main">
        {chats.isUnauthenticated === true ? (
          <SignIn />
        ) : (
          <ChatView
            key={id}
            id={id}
            preferences={preferences}
            onChanged={() => void chats.refresh()}
            isInspecting={isInspecting}
            onCloseInspector={inspector.close}
          />
        )}
      </AppShell.Main>
    </AppShell>
  );
}
