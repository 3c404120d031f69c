import type { UIMessage } from "ai";
import { Pencil } from "lucide-react";
import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";
import { useChatContext } from "../chat/chat-context.ts";
import { textOf } from "../chat/message-text.ts";
import { Button, IconButton } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { TextArea } from "../components/text-area.tsx";
import { MessageContainer } from "./message-container.tsx";
import { type RewindScope, rewindInWords } from "./rewind-scope.ts";
import { UserContent } from "./user-content.tsx";

interface EditorProps {
  readonly message: UIMessage;
  readonly replaced: RewindScope;
  readonly onClose: () => void;
}

function Editor({ message, replaced, onClose }: EditorProps) {
  // Another page may have requested an answer meanwhile.
  const { edit, isBusy, isContinuing } = useChatContext();
  const isWaiting = isBusy || isContinuing;
  const [text, setText] = useState(() => textOf(message));
  const send = () => {
    onClose();
    edit(message.id, text.trim());
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  const editor = useRef<HTMLDivElement>(null);
  useEffect(() => editor.current?.querySelector("textarea")?.focus(), []);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the editor from any control.
    <div ref={editor} className="stack gap-2 message-editor" onKeyDown={cancelOnEscape}>
      <TextArea aria-label="Edit your message" value={text} onChange={setText} />
      <div className="row end">
        <p className="text-sm dim grow">
          {isWaiting ? "You can send this when the answer has ended." : rewindInWords(replaced)}
        </p>
        <Button onClick={onClose}>Cancel</Button>
        <Button variant="primary" disabled={isWaiting || text.trim() === ""} onClick={send}>
          Send
        </Button>
      </div>
    </div>
  );
}

interface ActionsProps {
  readonly message: UIMessage;
  readonly canEdit: boolean;
  readonly onEdit: () => void;
}

function Actions({ message, canEdit, onEdit }: ActionsProps) {
  const { isBusy, isContinuing } = useChatContext();
  return (
    <div className="message-actions">
      {!(isBusy || isContinuing) && canEdit && (
        <IconButton label="Edit your message" size="sm" onClick={onEdit}>
          <Pencil size={16} />
        </IconButton>
      )}
      <CopyButton text={textOf(message)} label="Copy your message" />
    </div>
  );
}

interface UserMessageProps {
  readonly message: UIMessage;
  /** The messages that an edit replaces. */
  readonly replaced: RewindScope;
}

function isSame(one: UserMessageProps, other: UserMessageProps): boolean {
  const [before, after] = [one.replaced, other.replaced];
  const isSameRange = before.count === after.count && before.isFinal === after.isFinal;
  return one.message === other.message && isSameRange;
}

/** A user message with its actions. */
export const UserMessage = memo(function UserMessage({ message, replaced }: UserMessageProps) {
  const [isEditing, setEditing] = useState(false);
  const { isLive } = useChatContext();
  const canEdit = !(replaced.isFinal || isLive);
  return (
    <MessageContainer label="You">
      {isEditing && canEdit ? (
        <Editor message={message} replaced={replaced} onClose={() => setEditing(false)} />
      ) : (
        <>
          <UserContent message={message} />
          <Actions message={message} canEdit={canEdit} onEdit={() => setEditing(true)} />
        </>
      )}
    </MessageContainer>
  );
}, isSame);
