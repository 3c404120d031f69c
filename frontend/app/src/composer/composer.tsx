import "./composer.css";
import type { UIMessage } from "ai";
import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  memo,
  useEffect,
  useRef,
  useState,
} from "react";
import { textOf } from "../chat/message-text.ts";
import type { Conversation } from "../chat/use-conversation.ts";
import { Button, IconButton } from "../components/button.tsx";
import { useReflexGuard, watchPointer } from "../components/reflex-guard.ts";
import { rowsOf } from "../components/text-area.tsx";
import { VoiceButton, VoicePanel } from "../voice/voice-controls.tsx";
import { AttachmentList } from "./attachment-list.tsx";
import { useAttachments } from "./use-attachments.ts";
import { useDraft } from "./use-draft.ts";
import { useQueuedMessage } from "./use-queued-message.ts";

const MAX_ROWS = 8;
/** The key code of a key press that an input method handles; Safari reports it only so. */
const INPUT_METHOD_KEY = 229;

/** Whether focusing a text field does not open an on-screen keyboard. */
function hasHardwareKeyboard(): boolean {
  return matchMedia("(pointer: fine)").matches;
}

/** Whether a key press sends the message: Enter, unless it confirms the text of an input method. */
function isSendKey({ key, shiftKey, keyCode, nativeEvent }: KeyboardEvent): boolean {
  const isComposing = nativeEvent.isComposing || keyCode === INPUT_METHOD_KEY;
  return key === "Enter" && !shiftKey && !isComposing;
}

interface FileInputProps {
  readonly onFiles: (files: Iterable<File>) => void;
}

function AttachButton({ onFiles }: FileInputProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          onFiles(currentTarget.files ?? []);
          // The same file can be chosen again.
          currentTarget.value = "";
        }}
      />
      <IconButton label="Attach files" onClick={() => input.current?.click()}>
        <Paperclip size={18} />
      </IconButton>
    </>
  );
}

/** The handlers of an element that files can be dropped on, and whether files are above it. */
function useDropTarget(onFiles: (files: Iterable<File>) => void) {
  const [isTarget, setTarget] = useState(false);
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setTarget(true);
    },
    onDragLeave: (event: DragEvent) => {
      const isInside = event.currentTarget.contains(event.relatedTarget as Node | null);
      if (!isInside) setTarget(false);
    },
    onDrop: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setTarget(false);
      onFiles(event.dataTransfer.files);
    },
  };
  return [isTarget, handlers] as const;
}

interface MainButtonProps {
  readonly isBusy: boolean;
  readonly isStopping: boolean;
  readonly isUploading: boolean;
  readonly canSend: boolean;
  readonly onSend: () => void;
  readonly onStop: () => void;
}

/** The button that sends, or stops the answer: a press on the one never does the other. */
function MainButton(props: MainButtonProps) {
  const { isBusy, isStopping, isUploading, canSend, onSend, onStop } = props;
  const { isArriving, isReflex, handlers } = useReflexGuard(isBusy);
  useEffect(watchPointer, []);
  return (
    <IconButton
      {...handlers}
      {...(isArriving && { "aria-disabled": true })}
      label={isBusy ? "Stop" : "Send"}
      variant={isBusy ? "default" : "primary"}
      isRound
      isLoading={isBusy ? isStopping : isUploading}
      disabled={!isBusy && !canSend}
      onClick={(event) => {
        if (isReflex(event)) return;
        if (isBusy) onStop();
        else onSend();
      }}
    >
      {isBusy ? <Square size={14} fill="currentColor" /> : <ArrowUp size={18} />}
    </IconButton>
  );
}

interface QueueNoteProps {
  readonly queued: ReturnType<typeof useQueuedMessage>;
  readonly isReconnecting: boolean;
  readonly hasPending: boolean;
}

/** Says when a queued message is sent, or why it was not. */
function QueueNote({ queued: { state, cancel }, isReconnecting, hasPending }: QueueNoteProps) {
  let note = "This message is sent when the answer is complete.";
  if (state === "kept") note = "This message was not sent, since the answer has failed.";
  else if (isReconnecting) note = "This message is sent when the connection is back.";
  else if (hasPending) {
    note = "This message is sent after the approval; send it again to withdraw the approval.";
  }
  return (
    <div className="queue-note" aria-live="polite">
      {state !== "empty" && (
        <div className="row between nowrap text-sm dim">
          <p>{note}</p>
          {state === "queued" ? (
            <Button size="sm" onClick={cancel}>
              Do not send
            </Button>
          ) : (
            <IconButton label="Close" size="sm" onClick={cancel}>
              <X size={14} />
            </IconButton>
          )}
        </div>
      )}
    </div>
  );
}

interface ComposerProps
  extends Pick<
    Conversation,
    "id" | "isBusy" | "open" | "problem" | "mustQueue" | "send" | "stop" | "voice"
  > {
  readonly isReconnecting: boolean;
  readonly isStopping: boolean;
  /** Whether approvals are pending, which a new message supersedes. */
  readonly hasPending: boolean;
  /** The user message of a refused request. */
  readonly unsent: UIMessage | undefined;
}

/** The message input, with attachments, voice, send and stop. */
export const Composer = memo(function Composer(props: ComposerProps) {
  const { id, isBusy, isReconnecting, isStopping, hasPending, unsent, voice, send, stop } = props;
  const { attachments, add, remove } = useAttachments();
  const { text, setText, lostFiles, dismissLostFiles } = useDraft(id, attachments.length > 0);
  const sentFiles = useRef<readonly File[]>([]);
  useEffect(() => {
    if (unsent === undefined) return;
    // A refused message returns, unless another one is being written.
    setText((current) => (current === "" ? textOf(unsent) : current));
    add(sentFiles.current);
    sentFiles.current = [];
  }, [unsent, add, setText]);
  const [isUploading, setUploading] = useState(false);
  const [isDropTarget, dropHandlers] = useDropTarget(add);
  const canSend = (text.trim() !== "" || attachments.length > 0) && !isUploading;

  const submit = async () => {
    if (!canSend) return;
    if (props.mustQueue) return queued.queue();
    queued.cancel();
    const files = attachments.map(({ file }) => file);
    setUploading(true);
    const isAccepted = await send(text, files);
    setUploading(false);
    if (!isAccepted) return;
    sentFiles.current = files;
    dismissLostFiles();
    remove(attachments);
    setText((current) => (current === text ? "" : current));
  };
  const queued = useQueuedMessage({
    isBusy: props.mustQueue,
    open: props.open,
    problem: props.problem,
    send: () => void submit(),
  });
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isSendKey(event)) return;
    event.preventDefault();
    void submit();
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };

  return (
    <div className="column composer">
      <VoicePanel voice={voice} hasPending={hasPending} />
      <div className="composer-box" data-drop-target={isDropTarget} {...dropHandlers}>
        <AttachmentList attachments={attachments} onRemove={(attachment) => remove([attachment])} />
        {lostFiles && (
          <div className="row between nowrap text-sm dim" role="status">
            <p>Files are not kept with a draft; attach them again.</p>
            <IconButton label="Close" size="sm" onClick={dismissLostFiles}>
              <X size={14} />
            </IconButton>
          </div>
        )}
        <QueueNote queued={queued} isReconnecting={isReconnecting} hasPending={hasPending} />
        <textarea
          className="bare-control"
          aria-label="Message"
          placeholder={
            hasPending ? "Write a message (withdraws pending approvals)" : "Write a message"
          }
          // biome-ignore lint/a11y/noAutofocus: the chat is opened to write in it.
          autoFocus={hasHardwareKeyboard()}
          rows={rowsOf(text, MAX_ROWS)}
          value={text}
          onChange={(event) => {
            queued.cancel();
            setText(event.currentTarget.value);
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <div className="row between">
          <AttachButton onFiles={add} />
          <div className="row">
            <VoiceButton voice={voice} />
            <MainButton
              isBusy={isBusy}
              isStopping={isStopping}
              isUploading={isUploading && attachments.length > 0}
              canSend={canSend}
              onSend={() => void submit()}
              onStop={() => {
                queued.cancel();
                stop();
              }}
            />
          </div>
        </div>
      </div>
    </div>
  );
});
