import { Badge, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import { memo, type ReactNode } from "react";
import { isRecord } from "../approvals/request.ts";
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

interface SectionProps {
  readonly title: string;
  readonly children: ReactNode;
}

function Section({ title, children }: SectionProps) {
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      {children}
    </Stack>
  );
}

function Details({ part, edits }: CallProps) {
  const input = toolInput(part);
  return (
    <Stack gap="xs">
      {edits !== undefined && (
        <Section title="Arguments, changed before the approval">
          <Fields value={edits} label="Arguments" />
        </Section>
      )}
      {input !== undefined && (
        <Section title={edits === undefined ? "Arguments" : "What the agent asked for"}>
          <Fields value={input} label={edits === undefined ? "Arguments" : "Asked for"} />
        </Section>
      )}
      {part.state === "output-available" && (
        <Section title="Result">
          {isRecord(part.output) ? (
            <Fields value={part.output} label="Result" />
          ) : (
            <JsonValue value={part.output} />
          )}
        </Section>
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
            <Text span inherit c="dimmed">
              Reason:
            </Text>{" "}
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
