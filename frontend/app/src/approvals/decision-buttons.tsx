import { useId } from "react";
import { Button } from "../components/button.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { type ApprovalRequest, responseSchema } from "./approval-requests.ts";
import { parseDescriptor } from "./descriptor.ts";
import { useCardShortcuts } from "./use-card-shortcuts.ts";

/** The form that is open in place of the buttons. */
export type OpenForm = "edit" | "remember" | "deny" | "respond";

interface DecisionButtonsProps {
  readonly request: ApprovalRequest;
  readonly isSending: boolean;
  readonly onApprove: () => void;
  readonly onForm: (form: OpenForm) => void;
  /** The number of long values that were not shown in full, which must not be approved. */
  readonly unread: number;
  /** Why the person cannot decide, if other people do. */
  readonly blocked: string | undefined;
  /** Why the call can only be denied. */
  readonly unshown: string | undefined;
}

/** What a person must do before approving. */
export function unreadHint(unread: number): string {
  return unread === 1
    ? "A long value is not shown in full. Open it before you approve."
    : `${unread} long values are not shown in full. Open them before you approve.`;
}

/**
 * The letters that decide while the focus is inside the card. They are always visible: shown only
 * then, they would move the buttons, or leave an empty line.
 */
function KeyHint({ isEditable }: { readonly isEditable: boolean }) {
  const [areKeysOn, setKeysOn] = useCardShortcuts();
  return (
    <div className="row key-hint text-xs dim">
      {areKeysOn ? (
        <span>
          Keys in this card: <kbd>A</kbd> approve, <kbd>D</kbd> deny{isEditable && ", "}
          {isEditable && <kbd>E</kbd>}
          {isEditable && " edit"}
        </span>
      ) : (
        <span>The keys are off.</span>
      )}
      <Button size="sm" variant="subtle" onClick={() => setKeysOn(!areKeysOn)}>
        {areKeysOn ? "Turn the keys off" : "Turn the keys on"}
      </Button>
    </div>
  );
}

function editLabel({ payloadSchema }: ApprovalRequest, isEditable: boolean): string {
  if (isEditable) return "Edit";
  return payloadSchema === undefined ? "Edit the answer" : "Fill in the form";
}

/** The buttons of an open request. */
export function DecisionButtons(props: DecisionButtonsProps) {
  const { request, isSending, onApprove, onForm, unread, blocked, unshown } = props;
  const [areKeysOn] = useCardShortcuts();
  const hint = useId();
  const { editable, rememberable } = parseDescriptor(request.descriptor);
  const isEditable = editable || request.payload !== undefined;
  const unseen = unshown ?? (unread > 0 ? unreadHint(unread) : undefined);
  const why = blocked ?? unseen;
  const isLocked = why !== undefined || isSending;
  const locked = why === undefined ? {} : { "aria-describedby": hint };
  const key = (letter: string) => ({
    "data-key": letter,
    ...(areKeysOn && { "aria-keyshortcuts": letter }),
  });
  const open = (form: OpenForm) => {
    const isDenial = form === "deny" || form === "respond";
    const isOff = isSending || blocked !== undefined || (!isDenial && unseen !== undefined);
    return {
      "aria-disabled": isOff,
      onClick: () => {
        if (!isOff) onForm(form);
      },
    };
  };
  return (
    <div className="stack gap-2">
      {why !== undefined && (
        <p className="text-sm strong" id={hint} role="status">
          {why}
        </p>
      )}
      <div className="row">
        <GuardedButton
          {...locked}
          {...key("a")}
          isLocked={isLocked}
          variant="primary"
          className="decision"
          onAccept={onApprove}
        >
          Approve
        </GuardedButton>
        <Button
          {...(blocked !== undefined && locked)}
          {...key("d")}
          {...open("deny")}
          variant="danger"
          className="decision"
        >
          Deny
        </Button>
        {isEditable && (
          <Button {...locked} {...key("e")} {...open("edit")}>
            {editLabel(request, editable)}
          </Button>
        )}
        {responseSchema(request) !== undefined && (
          <Button {...open("respond")}>Answer in its place…</Button>
        )}
        {rememberable && (
          <Button {...locked} {...open("remember")}>
            Do not ask again…
          </Button>
        )}
      </div>
      <KeyHint isEditable={isEditable} />
    </div>
  );
}
