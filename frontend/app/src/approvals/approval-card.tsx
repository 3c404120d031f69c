import { Badge, Group, Paper, Stack, Text } from "@mantine/core";
import { useId, useLayoutEffect, useRef, useState } from "react";
import { Findings } from "../components/findings.tsx";
import { ReadingContext, useReading } from "../components/reading.ts";
import { FieldTable, VisibleText } from "../components/values.tsx";
import { visibleName } from "../components/visible-text.ts";
import {
  type ApprovalRequest,
  type Decide,
  type Decision,
  parseDescriptor,
} from "./approval-requests.ts";
import { DecisionButtons } from "./decision-buttons.tsx";
import { DefinitionNotice } from "./definition-notice.tsx";
import { EditForm } from "./edit-form.tsx";
import { RememberForm } from "./remember-form.tsx";
import { TimeLeft } from "./time-left.tsx";

export function requestName(request: ApprovalRequest): string {
  return visibleName(request.title ?? request.toolName);
}

function Heading({ request, id }: { readonly request: ApprovalRequest; readonly id: string }) {
  const { expiresAt } = parseDescriptor(request.descriptor);
  const { agent } = request;
  const isOpen = request.decision === undefined;
  return (
    <Stack gap={4}>
      <Group gap="xs" justify="space-between">
        <Text fw={600} size="lg" id={id}>
          <VisibleText text={request.title ?? request.toolName} />
        </Text>
        <Group gap="xs">
          {expiresAt !== undefined && isOpen && <TimeLeft until={expiresAt} />}
          <Badge>{isOpen ? "waits for you" : `${request.decision}, not sent yet`}</Badge>
        </Group>
      </Group>
      <Text size="sm" c="dimmed">
        {agent === undefined ? "The agent" : <VisibleText text={agent} />} wants to call{" "}
        <Text span inherit ff="monospace">
          <VisibleText text={request.toolName} />
        </Text>
      </Text>
      {request.reason !== undefined && (
        <Text size="sm">
          <VisibleText text={request.reason} />
        </Text>
      )}
      <Findings name="Title" value={request.title} />
      <Findings name="Name of the tool" value={request.toolName} />
      <Findings name="Agent" value={agent} />
      <Findings name="Reason" value={request.reason} />
    </Stack>
  );
}

/** The form that is open in place of the buttons. */
type OpenForm = "edit" | "remember";

interface ActionsProps {
  readonly request: ApprovalRequest;
  readonly onDecide: Decide;
  readonly unread: number;
  readonly form: OpenForm | undefined;
  readonly onForm: (form: OpenForm | undefined) => void;
}

function Actions({ request, onDecide, unread, form, onForm }: ActionsProps) {
  const { approvalId, input } = request;
  const { defaults, schema } = parseDescriptor(request.descriptor);
  const approve = (decision: Omit<Decision & { approved: true }, "approved">) =>
    onDecide(approvalId, { approved: true, ...decision });
  const onCancel = () => onForm(undefined);
  switch (form) {
    case "edit":
      return (
        <EditForm
          schema={schema}
          input={input}
          defaults={defaults}
          onApprove={(edit) => approve({ edit })}
          onCancel={onCancel}
        />
      );
    case "remember":
      return (
        <RememberForm
          request={request}
          onApprove={(remember) => approve({ remember })}
          onCancel={onCancel}
        />
      );
    case undefined:
      return (
        <DecisionButtons
          request={request}
          onDecide={onDecide}
          onEdit={() => onForm("edit")}
          onRemember={() => onForm("remember")}
          unread={unread}
        />
      );
  }
}

interface ApprovalCardProps {
  readonly request: ApprovalRequest;
  readonly onDecide: Decide;
  /** The element to focus: not a button, so that a stray key does not decide. */
  readonly focusRef?: (element: HTMLElement | null) => void;
  /** Called with the number of long values that were not shown in full. */
  readonly onUnread?: (approvalId: string, unread: number) => void;
}

/**
 * The card of one approval request.
 *
 * It shows the properties of the tool part literally; text of the model cannot imitate a card, and
 * cannot hide or reorder its content. It approves only what was shown in full.
 */
export function ApprovalCard({ request, onDecide, focusRef, onUnread }: ApprovalCardProps) {
  const [form, setForm] = useState<OpenForm>();
  const [reading, unread] = useReading();
  const heading = useId();
  const { approvalId } = request;
  const { changed, defaults } = parseDescriptor(request.descriptor);
  const card = useRef<HTMLElement | null>(null);
  const setCard = (element: HTMLElement | null) => {
    card.current = element;
    focusRef?.(element);
  };
  const openForm = (next: OpenForm | undefined) => {
    setForm(next);
    if (next === undefined) card.current?.focus();
  };
  useLayoutEffect(() => onUnread?.(approvalId, unread), [onUnread, approvalId, unread]);
  return (
    <ReadingContext value={reading}>
      <Paper
        component="section"
        withBorder
        p="md"
        tabIndex={-1}
        ref={setCard}
        aria-label={`Approval: ${requestName(request)}`}
        aria-describedby={heading}
        className="mantine-focus-always card"
      >
        <Stack gap="sm">
          <Heading request={request} id={heading} />
          {changed !== undefined && <DefinitionNotice changed={changed} />}
          {form !== "edit" && (
            <FieldTable value={request.input} label="Arguments" defaults={defaults} />
          )}
          {request.decision === undefined && (
            <Actions
              request={request}
              onDecide={onDecide}
              unread={unread}
              form={form}
              onForm={openForm}
            />
          )}
        </Stack>
      </Paper>
    </ReadingContext>
  );
}
