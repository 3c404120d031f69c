import { ActionIcon, AppShell, Burger, Group, Title } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useCallback, useState } from "react";
import { newChatId, useChatId } from "./address.ts";
import { ChatView } from "./chat/chat-view.tsx";
import { SignIn } from "./chat/sign-in.tsx";
import { ChatList } from "./chats/chat-list.tsx";
import { useChats } from "./chats/use-chats.ts";
import { useChoices } from "./choices.ts";
import { ConnectionPanel } from "./connection-panel.tsx";
import { List } from "./shown/icons.tsx";

/** The page: chats on one side, the open one beside them. */
export function Page() {
  const [id, open] = useChatId();
  const [query, setQuery] = useState("");
  const [asked] = useDebouncedValue(query, 200);
  const chats = useChats(asked);
  const choices = useChoices();
  const [isNavOpen, nav] = useDisclosure(false);
  const [isInspecting, inspector] = useDisclosure(false);
  const { close } = nav;
  const goTo = useCallback(
    (chat: string) => {
      close();
      open(chat);
    },
    [close, open],
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
        <AppShell.Section grow className="scrolls">
          <ChatList
            chats={chats}
            query={query}
            onQuery={setQuery}
            openId={id}
            onOpen={goTo}
            onNew={() => goTo(newChatId())}
          />
        </AppShell.Section>
        <AppShell.Section>
          <ConnectionPanel choices={choices} />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main className="main">
        {chats.isStranger === true ? (
          <SignIn />
        ) : (
          <ChatView
            key={id}
            id={id}
            choices={choices}
            onChanged={() => void chats.refresh()}
            isInspecting={isInspecting}
            onEndInspecting={inspector.close}
          />
        )}
      </AppShell.Main>
    </AppShell>
  );
}
