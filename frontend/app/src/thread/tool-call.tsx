import { Badge, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import { memo, type ReactNode } from "react";
import { isRecord } from "../approvals/approval-requests.ts";
import { useChatContext } from "../chat/chat-context.ts";
import { Disclosure } from "../components/disclosure.tsx";
import { Check, Cross } from "../components/icons.tsx";
import { FieldTable, JsonValue, VisibleText } from "../components/values.tsx";
import { visibleName } from "../components/visible-text.ts";
import { type ToolPart, type ToolState, toolInput, toolName, toolState } from "./tool-states.ts";

function StateIcon({ state }: { readonly state: ToolState }) {
  if (!state.isFinished) return <Loader size={12} aria-hidden="true" />;
  return state.isProblem ? <Cross size={12} /> : <Check size={12} />;
}

interface CallProps {
  readonly part: ToolPart;
  /** The arguments that were approved in place of the requested ones. */
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
          <FieldTable value={edits} label="Arguments" />
        </Section>
      )}
      {input !== undefined && (
        <Section title={edits === undefined ? "Arguments" : "What the agent asked for"}>
          <FieldTable value={input} label={edits === undefined ? "Arguments" : "Asked for"} />
        </Section>
      )}
      {part.state === "output-available" && (
        <Section title="Result">
          {isRecord(part.output) ? (
            <FieldTable value={part.output} label="Result" />
          ) : (
            <JsonValue value={part.output} />
          )}
        </Section>
      )}
    </Stack>
  );
}

/** A tool call on one line, with expandable details. */
export const ToolCall = memo(function ToolCall({ part, edits }: CallProps) {
  const { toolProgress, requests } = useChatContext();
  const state = toolState(part, toolProgress, requests.length > 0);
  const name = part.title ?? toolName(part);
  return (
    <Paper component="section" withBorder px="sm" py="xs" aria-label={`Tool: ${visibleName(name)}`}>
      <Stack gap={4}>
        <Group gap="xs" justify="space-between">
          <Text size="sm" fw={600}>
            <VisibleText text={name} />
          </Text>
          <Badge leftSection={<StateIcon state={state} />}>{state.label}</Badge>
        </Group>
        {part.approval?.reason !== undefined && part.errorText === undefined && (
          <Text size="sm">
            <Text span inherit c="dimmed">
              Reason:
            </Text>{" "}
            <VisibleText text={part.approval.reason} />
          </Text>
        )}
        {part.errorText !== undefined && (
          <Text size="sm" c="error">
            <VisibleText text={part.errorText} />
          </Text>
        )}
        <Disclosure label="Details">
          <Details part={part} edits={edits} />
        </Disclosure>
      </Stack>
    </Paper>
  );
});
