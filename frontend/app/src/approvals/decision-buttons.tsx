import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useId, useState } from "react";
import { type ApprovalRequest, type Decide, parseDescriptor } from "./approval-requests.ts";

const MAX_REASON = 2000;

/** A repeated key was pressed for the previously focused element. */
function ignoreRepeats(event: KeyboardEvent) {
  if (event.repeat && (event.key === "Enter" || event.key === " ")) event.preventDefault();
}

/** Enter in a text field must not decide. */
function ignoreEnter(event: KeyboardEvent) {
  if (event.key === "Enter") event.preventDefault();
}

interface DecisionButtonsProps {
  readonly request: ApprovalRequest;
  readonly onDecide: Decide;
  readonly onEdit: () => void;
  readonly onRemember: () => void;
  /** The number of long values that were not shown in full, which must not be approved. */
  readonly unread: number;
}

/** What a person must do before approving. */
export function unreadHint(unread: number): string {
  return unread === 1
    ? "A long value is not shown in full. Open it before you approve."
    : `${unread} long values are not shown in full. Open them before you approve.`;
}

/** The buttons of an open request. */
export function DecisionButtons(props: DecisionButtonsProps) {
  const { request, onDecide, onEdit, onRemember, unread } = props;
  const [reason, setReason] = useState("");
  const hint = useId();
  const { editable, rememberable } = parseDescriptor(request.descriptor);
  const { approvalId } = request;
  const locked = unread > 0 ? { disabled: true, "aria-describedby": hint } : {};
  const deny = () => {
    const trimmed = reason.trim();
    onDecide(approvalId, { approved: false, ...(trimmed !== "" && { reason: trimmed }) });
  };
  return (
    <Stack gap="xs" onKeyDown={ignoreRepeats}>
      {unread > 0 && (
        <Text size="sm" fw={500} id={hint} role="status">
          {unreadHint(unread)}
        </Text>
      )}
      <Group gap="xs">
        <Button {...locked} onClick={() => onDecide(approvalId, { approved: true })}>
          Approve
        </Button>
        {editable && (
          <Button {...locked} variant="default" onClick={onEdit}>
            Edit
          </Button>
        )}
        {rememberable && (
          <Button {...locked} variant="default" onClick={onRemember}>
            Do not ask again…
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
