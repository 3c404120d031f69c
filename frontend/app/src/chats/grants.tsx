import { Button, Group, Paper, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Grant } from "sluicegate";
import { errorMessage, listGrants, withdrawGrant } from "../api.ts";
import { timeUntil } from "../components/duration.ts";
import { FieldTable, VisibleText } from "../components/values.tsx";
import { visibleName } from "../components/visible-text.ts";

/** The time until which a grant is valid, in the language of the browser. */
function expiry({ expiresAt }: Grant): string {
  const until = new Date(expiresAt);
  return `Until ${until.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })} (${timeUntil(until.getTime() - Date.now())}).`;
}

interface GrantEntryProps {
  readonly grant: Grant;
  readonly onWithdraw: () => void;
}

function GrantEntry({ grant, onWithdraw }: GrantEntryProps) {
  const { agent, id, tool, where } = grant;
  const isScoped = Object.keys(where).length > 0;
  return (
    <Paper component="li" withBorder p="sm">
      <Stack gap={6}>
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Text size="sm">
            <VisibleText text={agent} /> can call{" "}
            <Text span inherit ff="monospace">
              <VisibleText text={tool} />
            </Text>{" "}
            {isScoped ? "with these values:" : "with any arguments."}
          </Text>
          <Button
            className="no-shrink"
            size="compact-sm"
            variant="default"
            aria-label={`Ask again: ${visibleName(tool)}, ${visibleName(agent)}`}
            onClick={onWithdraw}
          >
            Ask again
          </Button>
        </Group>
        {isScoped && <FieldTable value={where} label="Values" />}
        <Text size="xs" c="dimmed">
          {expiry(grant)}
          <br />
          Id: <VisibleText text={id} />
        </Text>
      </Stack>
    </Paper>
  );
}

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
      setGrants((before) => before.filter((grant) => grant.id !== id));
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
      <Stack component="ul" gap="xs" p={0} className="list">
        {grants.map((grant) => (
          <GrantEntry key={grant.id} grant={grant} onWithdraw={() => void withdraw(grant.id)} />
        ))}
      </Stack>
      {problem !== undefined && (
        <Text size="sm" c="error" role="alert">
          {problem}
        </Text>
      )}
    </Stack>
  );
}
