import { Badge, Button, Group, Paper, Stack, Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { FieldTable, VisibleText } from "../components/values.tsx";
import { visibleName } from "../components/visible-text.ts";
import { type ApprovalRequest, type Decide, parseDescriptor } from "./approval-requests.ts";
import { EditForm } from "./edit-form.tsx";
import { TimeLeft } from "./time-left.tsx";

const MAX_REASON = 2000;

/** A repeated key was pressed for the previously focused element. */
function ignoreRepeats(event: KeyboardEvent) {
  if (event.repeat && (event.key === "Enter" || event.key === " ")) event.preventDefault();
}

/** Enter in a text field must not decide. */
function ignoreEnter(event: KeyboardEvent) {
  if (event.key === "Enter") event.preventDefault();
}

export function requestName(request: ApprovalRequest): string {
  return visibleName(request.title ?? request.toolName);
}

interface ApprovalCardProps {
  readonly request: ApprovalRequest;
  readonly onDecide: Decide;
  /** The element to focus: not a button, so that a stray key does not decide. */
  readonly focusRef?: (element: HTMLElement | null) => void;
}

function Heading({ request, id }: { readonly request: ApprovalRequest; readonly id: string }) {
  const { agent, expiresAt } = parseDescriptor(request.descriptor);
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
    </Stack>
  );
}

function DecisionButtons({
  request,
  onDecide,
  onEdit,
}: ApprovalCardProps & { readonly onEdit: () => void }) {
  const [reason, setReason] = useState("");
  const { editable, rememberable } = parseDescriptor(request.descriptor);
  const { approvalId } = request;
  const deny = () => {
    const trimmed = reason.trim();
    onDecide(approvalId, { approved: false, ...(trimmed !== "" && { reason: trimmed }) });
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
            onClick={() => onDecide(approvalId, { approved: true, remember: "chat" })}
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
          className="grow"
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
 * The card of one approval request.
 *
 * It shows the properties of the tool part literally; text of the model cannot imitate a card, and
 * cannot hide or reorder its content.
 */
export function ApprovalCard({ request, onDecide, focusRef }: ApprovalCardProps) {
  const [isEditing, setEditing] = useState(false);
  const heading = useId();
  const { schema } = parseDescriptor(request.descriptor);
  const card = useRef<HTMLElement | null>(null);
  const setCard = (element: HTMLElement | null) => {
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
      ref={setCard}
      aria-label={`Approval: ${requestName(request)}`}
      aria-describedby={heading}
      className="mantine-focus-always card"
    >
      <Stack gap="sm">
        <Heading request={request} id={heading} />
        {!isEditing && <FieldTable value={request.input} label="Arguments" />}
        {request.decision === undefined &&
          (isEditing ? (
            <EditForm
              schema={schema}
              input={request.input}
              onApprove={(edit) => onDecide(request.approvalId, { approved: true, edit })}
              onCancel={endEditing}
            />
          ) : (
            <DecisionButtons
              request={request}
              onDecide={onDecide}
              onEdit={() => setEditing(true)}
            />
          ))}
      </Stack>
    </Paper>
  );
}
