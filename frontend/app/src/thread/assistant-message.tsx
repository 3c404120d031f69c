import type { UIMessage } from "ai";
import { CircleStop, RefreshCw } from "lucide-react";
import { memo, useEffect } from "react";
import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import { useChatContext } from "../chat/chat-context.ts";
import { textOf } from "../chat/message-text.ts";
import { Badge } from "../components/badge.tsx";
import { IconButton } from "../components/button.tsx";
import { formatCount } from "../components/canonical-number.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { Dots } from "../components/spinner.tsx";
import { isRecord } from "../is-record.ts";
import { loadMarkdown } from "../markdown/lazy-markdown.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { EarlierVersions } from "./earlier-versions.tsx";
import { MessageContainer } from "./message-container.tsx";
import { MessageParts } from "./message-parts.tsx";
import { IS_FINAL, isFinal } from "./rewind-scope.ts";

/** The model and the token usage of an answer. */
function Metadata({ message }: { readonly message: UIMessage }) {
  if (!isRecord(message.metadata)) return null;
  const { model, usage } = message.metadata;
  const tokens = isRecord(usage) ? usage.totalTokens : undefined;
  const items = [
    typeof model === "string" && visibleName(model),
    typeof tokens === "number" && `${formatCount(tokens)} tokens`,
  ].filter(Boolean);
  return <span className="text-xs dim">{items.join(" · ")}</span>;
}

/** Says that the answer was stopped before its end. */
function Stopped({ message: { metadata } }: { readonly message: UIMessage }) {
  if (!isRecord(metadata) || metadata.stopped !== true) return null;
  return (
    <div>
      <Badge icon={<CircleStop size={12} />}>Stopped</Badge>
    </div>
  );
}

interface ActionsProps {
  readonly message: UIMessage;
  readonly isLast: boolean;
}

function Actions({ message, isLast }: ActionsProps) {
  const { isContinuing, isLive, regenerate } = useChatContext();
  const text = textOf(message);
  const isKept = isLive || isFinal(message);
  return (
    <div className="message-actions">
      {text !== "" && <CopyButton text={text} label="Copy the answer" />}
      {isLast && !isContinuing && (
        <IconButton
          label={`Answer again: ${isKept ? IS_FINAL : "This replaces the answer."}`}
          size="sm"
          disabled={isKept}
          onClick={() => regenerate(message.id)}
        >
          <RefreshCw size={16} />
        </IconButton>
      )}
      <Metadata message={message} />
    </div>
  );
}

interface AssistantMessageProps extends ActionsProps {
  readonly isStreaming: boolean;
  /** The open approval requests of the message. */
  readonly requests: readonly ApprovalRequest[];
}

/** An assistant message with its actions. */
export const AssistantMessage = memo(function AssistantMessage(props: AssistantMessageProps) {
  const { message, isLast, isStreaming, requests } = props;
  return (
    <MessageContainer label="Assistant" isBusy={isStreaming}>
      <MessageParts message={message} requests={requests} />
      <Stopped message={message} />
      {isStreaming && <Dots label="Answering" />}
      {!isStreaming && requests.length === 0 && <Actions message={message} isLast={isLast} />}
      <EarlierVersions message={message} />
    </MessageContainer>
  );
});

/** The place of an answer before its first chunk. */
export function PendingAnswer() {
  useEffect(() => void loadMarkdown(), []);
  return (
    <MessageContainer label="Assistant" isBusy>
      <Dots label="Answering" />
    </MessageContainer>
  );
}
