import { Badge, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import { memo } from "react";
import { useAround } from "../chat/context.ts";
import { Fields } from "../shown/fields.tsx";
import { Folded } from "../shown/folded.tsx";
import { Check, Cross } from "../shown/icons.tsx";
import { JsonValue } from "../shown/json-value.tsx";
import { Visible } from "../shown/visible.tsx";
import { visibleName } from "../shown/visible-text.ts";
import { type ToolPart, type ToolState, toolInput, toolName, toolState } from "./tool-states.ts";

function Mark({ state }: { readonly state: ToolState }) {
  if (!state.isOver) return <Loader size={12} aria-hidden="true" />;
  return state.isProblem ? <Cross size={12} /> : <Check size={12} />;
}

interface CallProps {
  readonly part: ToolPart;
  /** The arguments that a person approved in place of those asked about. */
  readonly edits: unknown;
}

function Details({ part, edits }: CallProps) {
  const input = toolInput(part);
  return (
    <Stack gap="xs">
      {edits !== undefined && (
        <>
          <Text size="sm" fw={600}>
            Arguments, changed before the approval
          </Text>
          <Fields value={edits} label="Arguments" />
          <Text size="sm" fw={600}>
            What the agent asked for
          </Text>
        </>
      )}
      {input !== undefined && (
        <Fields value={input} label={edits === undefined ? "Arguments" : "Asked for"} />
      )}
      {part.state === "output-available" && (
        <>
          <Text size="sm" fw={600}>
            Result
          </Text>
          <JsonValue value={part.output} />
        </>
      )}
    </Stack>
  );
}

/** A call of a tool, in one line that unfolds. */
export const ToolCall = memo(function ToolCall({ part, edits }: CallProps) {
  const { notes, requests } = useAround();
  const state = toolState(part, notes, requests.length > 0);
  const name = part.title ?? toolName(part);
  return (
    <Paper component="section" withBorder px="sm" py="xs" aria-label={`Tool: ${visibleName(name)}`}>
      <Stack gap={4}>
        <Group gap="xs" justify="space-between">
          <Text size="sm" fw={600}>
            <Visible text={name} />
          </Text>
          <Badge leftSection={<Mark state={state} />}>{state.words}</Badge>
        </Group>
        {part.approval?.reason !== undefined && part.errorText === undefined && (
          <Text size="sm">
            <Visible text={part.approval.reason} />
          </Text>
        )}
        {part.errorText !== undefined && (
          <Text size="sm" c="error">
            <Visible text={part.errorText} />
          </Text>
        )}
        <Folded label="Details">
          <Details part={part} edits={edits} />
        </Folded>
      </Stack>
    </Paper>
  );
});
