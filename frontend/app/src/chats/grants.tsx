import { Button, Group, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { type Grant, listGrants, sentenceOf, withdrawGrant } from "../server.ts";
import { Visible } from "../shown/visible.tsx";

/** The tools that need not ask in a chat any more, and how to let them ask again (A8). */
export function Grants({ chat }: { readonly chat: string }) {
  const [grants, setGrants] = useState<readonly Grant[]>([]);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    // A chat whose grants cannot be had shows none; its cards still ask.
    listGrants(chat).then(setGrants, () => {});
  }, [chat]);
  const withdraw = async (tool: string) => {
    try {
      await withdrawGrant(chat, tool);
      setGrants(grants.filter((grant) => grant.tool !== tool));
    } catch (error) {
      setProblem(sentenceOf(error));
    }
  };
  if (grants.length === 0) return null;
  return (
    <Stack component="section" gap="xs" aria-label="Always allowed">
      <Text size="sm" fw={500}>
        Allowed without asking in this chat
      </Text>
      {grants.map(({ tool }) => (
        <Group key={tool} justify="space-between" wrap="nowrap">
          <Text size="sm" ff="monospace">
            <Visible text={tool} />
          </Text>
          <Button size="compact-sm" variant="default" onClick={() => void withdraw(tool)}>
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
