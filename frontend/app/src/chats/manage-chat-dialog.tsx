import { type FormEvent, type RefObject, useEffect, useRef, useState } from "react";
import { type ChatSummary, deleteChat, renameChat } from "../api.ts";
import { Button } from "../components/button.tsx";
import { Dialog } from "../components/dialog.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { moveFocus } from "../components/reflex-guard.ts";
import { TextField } from "../components/text-field.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { errorMessage } from "../error-message.ts";
import { Grants } from "./grants.tsx";

const MAX_TITLE = 200;

interface ManageChatDialogProps {
  readonly chat: ChatSummary;
  readonly onClose: () => void;
  readonly onRenamed: () => void;
  readonly onDeleted: () => void;
}

/** The button that asks for a confirmation, or the one that declines it, which takes the focus. */
function useFocusOnChange(isConfirming: boolean): RefObject<HTMLButtonElement | null> {
  const button = useRef<HTMLButtonElement>(null);
  const shown = useRef(isConfirming);
  useEffect(() => {
    if (shown.current === isConfirming) return;
    shown.current = isConfirming;
    if (button.current !== null) moveFocus(button.current);
  }, [isConfirming]);
  return button;
}

/** A dialog to rename a chat, withdraw its grants, or delete it after a confirmation. */
export function ManageChatDialog({ chat, onClose, onRenamed, onDeleted }: ManageChatDialogProps) {
  const [title, setTitle] = useState(chat.title ?? "");
  const [isConfirming, setConfirming] = useState(false);
  const focused = useFocusOnChange(isConfirming);
  const [problems, setProblems] = useState<Partial<Record<"rename" | "delete", string>>>({});
  const attempt = async (
    action: keyof typeof problems,
    request: () => Promise<void>,
    onDone: () => void,
  ) => {
    setProblems({});
    try {
      await request();
      onDone();
      onClose();
    } catch (error) {
      setProblems({ [action]: errorMessage(error) });
    }
  };
  const rename = (event: FormEvent) => {
    event.preventDefault();
    void attempt("rename", () => renameChat(chat.id, title.trim()), onRenamed);
  };
  return (
    <Dialog title="Chat settings" onClose={onClose}>
      <div className="stack gap-5">
        <form className="stack gap-2" onSubmit={rename}>
          <TextField
            label="Title"
            data-autofocus
            maxLength={MAX_TITLE}
            value={title}
            error={problems.rename}
            onChange={setTitle}
          />
          <div className="row end">
            <Button type="submit" variant="primary" disabled={title.trim() === ""}>
              Rename
            </Button>
          </div>
        </form>
        <Grants chat={chat.id} />
        {isConfirming ? (
          <div className="stack gap-2">
            <p className="text-sm">
              Delete “<VisibleText text={chat.title ?? "Without a title"} />” for good, with all its
              messages?
            </p>
            {problems.delete !== undefined && (
              <p className="text-sm danger" role="alert">
                {problems.delete}
              </p>
            )}
            <div className="row end">
              <Button
                ref={focused}
                onClick={() => {
                  setConfirming(false);
                  setProblems({});
                }}
              >
                Keep it
              </Button>
              <GuardedButton
                variant="danger"
                onAccept={() => void attempt("delete", () => deleteChat(chat.id), onDeleted)}
              >
                Delete for good
              </GuardedButton>
            </div>
          </div>
        ) : (
          <div className="row end">
            <Button ref={focused} onClick={() => setConfirming(true)}>
              Delete
            </Button>
          </div>
        )}
      </div>
    </Dialog>
  );
}
