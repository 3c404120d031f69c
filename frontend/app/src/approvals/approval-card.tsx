import { Badge, Button, Group, Paper, Stack, Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { Fields } from "../shown/fields.tsx";
import { Visible } from "../shown/visible.tsx";
import { visibleName } from "../shown/visible-text.ts";
import { EditForm } from "./edit-form.tsx";
import { type ApprovalRequest, type Decide, readDescriptor } from "./request.ts";
import { TimeLeft } from "./time-left.tsx";

const MAX_REASON = 2000;

/** A key that is held down was meant for what had the focus before. */
function ignoreRepeats(event: KeyboardEvent) {
  if (event.repeat && (event.key === "Enter" || event.key === " ")) event.preventDefault();
}

/** Enter in a field ends the typing; it decides nothing. */
function ignoreEnter(event: KeyboardEvent) {
  if (event.key === "Enter") event.preventDefault();
}

export function nameOf(request: ApprovalRequest): string {
  return visibleName(request.title ?? request.toolName);
}

interface ApprovalCardProps {
  readonly request: ApprovalRequest;
  readonly onDecide: Decide;
  /** Takes the element that gets the focus; it is no button, so that no key decides by accident. */
  readonly focusRef?: (element: HTMLElement | null) => void;
}

function Heading({ request, id }: { readonly request: ApprovalRequest; readonly id: string }) {
  const { agent, expiresAt } = readDescriptor(request.descriptor);
  const isOpen = request.answer === undefined;
  return (
    <Stack gap={4}>
      <Group gap="xs" justify="space-between">
        <Text fw={600} size="lg" id={id}>
          <Visible text={request.title ?? request.toolName} />
        </Text>
        <Group gap="xs">
          {expiresAt !== undefined && isOpen && <TimeLeft until={expiresAt} />}
          <Badge>{isOpen ? "waits for you" : `${request.answer}, not sent yet`}</Badge>
        </Group>
      </Group>
      <Text size="sm" c="dimmed">
        {agent === undefined ? "The agent" : <Visible text={agent} />} wants to call{" "}
        <Text span inherit ff="monospace">
          <Visible text={request.toolName} />
        </Text>
      </Text>
      {request.reason !== undefined && (
        <Text size="sm">
          <Visible text={request.reason} />
        </Text>
      )}
    </Stack>
  );
}

function Choices({
  request,
  onDecide,
  onEdit,
}: ApprovalCardProps & { readonly onEdit: () => void }) {
  const [reason, setReason] = useState("");
  const { editable, rememberable } = readDescriptor(request.descriptor);
  const { approvalId } = request;
  const deny = () => {
    const why = reason.trim();
    onDecide(approvalId, { approved: false, ...(why !== "" && { reason: why }) });
  };
  return (
    <Stack gap="xs" onKeyDown={ignoreRepeats}>
      <Group gap="xs">
        <Button onClick={() => onDecide(approvalId, { approved: true })}>Approve</Button>
        {editable && (
          <Button variant="default" onClick={onEdit}>
            Edit
          </Button>
        )}
        {rememberable && (
          <Button
            variant="default"
            onClick={() => onDecide(approvalId, { approved: true, remember: true })}
          >
            Always in this chat
          </Button>
        )}
      </Group>
      <Group gap="xs" wrap="nowrap">
        <Button variant="default" onClick={deny}>
          Deny
        </Button>
        <TextInput
          className="grows"
          aria-label="Reason for denying (optional)"
          placeholder="Reason for denying (optional)"
          maxLength={MAX_REASON}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          onKeyDown={ignoreEnter}
        />
      </Group>
    </Stack>
  );
}

/**
 * One question to the person.
 *
 * Everything in it comes from the tool part of the message and is shown as it is; a model cannot
 * write such a card, and cannot hide or reorder what stands in one.
 */
export function ApprovalCard({ request, onDecide, focusRef }: ApprovalCardProps) {
  const [isEditing, setEditing] = useState(false);
  const heading = useId();
  const { schema } = readDescriptor(request.descriptor);
  const card = useRef<HTMLElement | null>(null);
  const takeCard = (element: HTMLElement | null) => {
    card.current = element;
    focusRef?.(element);
  };
  const endEditing = () => {
    setEditing(false);
    card.current?.focus();
  };
  return (
    <Paper
      component="section"
      withBorder
      p="md"
      tabIndex={-1}
      ref={takeCard}
      aria-label={`Approval: ${nameOf(request)}`}
      aria-describedby={heading}
      className="mantine-focus-always card"
    >
      <Stack gap="sm">
        <Heading request={request} id={heading} />
        {!isEditing && <Fields value={request.input} label="Arguments" />}
        {request.answer === undefined &&
          (isEditing ? (
            <EditForm
              schema={schema}
              input={request.input}
              onApprove={(edited) => onDecide(request.approvalId, { approved: true, edited })}
              onCancel={endEditing}
            />
          ) : (
            <Choices request={request} onDecide={onDecide} onEdit={() => setEditing(true)} />
          ))}
      </Stack>
    </Paper>
  );
}
