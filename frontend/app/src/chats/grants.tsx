import { Button, Group, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { errorMessage, type Grant, listGrants, withdrawGrant } from "../api.ts";
import { VisibleText } from "../components/values.tsx";

/** The grants of a chat, with a button to withdraw each of them (A8). */
export function Grants({ chat }: { readonly chat: string }) {
  const [grants, setGrants] = useState<readonly Grant[]>([]);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    // Without the list the section is hidden; calls without a grant still request approval.
    listGrants(chat).then(setGrants, () => {});
  }, [chat]);
  const withdraw = async (id: string) => {
    try {
      await withdrawGrant(chat, id);
      setGrants(grants.filter((grant) => grant.id !== id));
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  if (grants.length === 0) return null;
  return (
    <Stack component="section" gap="xs" aria-label="Always allowed">
      <Text size="sm" fw={500}>
        Allowed without asking in this chat
      </Text>
      {grants.map(({ id, tool }) => (
        <Group key={id} justify="space-between" wrap="nowrap">
          <Text size="sm" ff="monospace">
            <VisibleText text={tool} />
          </Text>
          <Button size="compact-sm" variant="default" onClick={() => void withdraw(id)}>
            Ask again
          </Button>
        </Group>
      ))}
      {problem !== undefined && (
        <Text size="sm" c="error" role="alert">
          {problem}
        </Text>
      )}
    </Stack>
  );
}
