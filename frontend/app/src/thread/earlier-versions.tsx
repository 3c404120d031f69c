import { useQuery } from "@tanstack/react-query";
import type { UIMessage } from "ai";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useMemo, useState } from "react";
import { loadVersion } from "../api.ts";
import { ChatContext, useChatContext } from "../chat/chat-context.ts";
import { IconButton } from "../components/button.tsx";
import { LabelledSpinner } from "../components/spinner.tsx";
import { errorMessage } from "../error-message.ts";
import { isRecord } from "../is-record.ts";
import { MessageParts } from "./message-parts.tsx";
import { UserContent } from "./user-content.tsx";

/** The number of this version of an answer, 1 if it replaced nothing. */
function versionOf({ metadata }: UIMessage): number {
  const version = isRecord(metadata) ? metadata.version : undefined;
  return typeof version === "number" && version > 1 ? version : 1;
}

function ReplacedMessage({ message, isFirst }: { message: UIMessage; isFirst: boolean }) {
  if (message.role === "user") {
    return (
      <article className="message" data-author="user" aria-label="Replaced message">
        <UserContent message={message} />
      </article>
    );
  }
  return (
    <article className="message" data-author="assistant" aria-label="Replaced answer">
      <MessageParts message={message} requests={[]} />
      {!isFirst && <EarlierVersions message={message} />}
    </article>
  );
}

interface ReplacedProps {
  readonly messageId: string;
  readonly version: number;
}

/** An earlier version of an answer, from its user message to what was the end of the chat. */
function Replaced({ messageId, version }: ReplacedProps) {
  const context = useChatContext();
  const { chatId } = context;
  const readOnly = useMemo(() => ({ ...context, requests: [], isReadOnly: true }), [context]);
  const { data, error } = useQuery({
    queryKey: ["version", chatId, messageId, version],
    queryFn: () => loadVersion(chatId, messageId, version),
    // What was replaced does not change.
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null) {
    return (
      <p className="text-sm danger" role="alert">
        {errorMessage(error)}
      </p>
    );
  }
  if (data === undefined) return <LabelledSpinner label="Loading the version" />;
  const first = data.find(({ role }) => role === "assistant");
  return (
    <ChatContext value={readOnly}>
      {data.map((message) => (
        <ReplacedMessage key={message.id} message={message} isFirst={message === first} />
      ))}
    </ChatContext>
  );
}

/** A control to read the earlier versions that this answer replaced. */
export function EarlierVersions({ message }: { readonly message: UIMessage }) {
  const [distance, setDistance] = useState(0);
  const latest = versionOf(message);
  if (latest === 1) return null;
  const shown = Math.max(1, latest - distance);
  return (
    <div className="stack gap-2">
      <div className="row gap-1">
        <IconButton
          label="Earlier version"
          size="sm"
          disabled={shown === 1}
          onClick={() => setDistance(distance + 1)}
        >
          <ChevronLeft size={16} />
        </IconButton>
        <span className="text-xs dim" role="status">
          Version {shown} of {latest}
        </span>
        <IconButton
          label="Later version"
          size="sm"
          disabled={shown === latest}
          onClick={() => setDistance(distance - 1)}
        >
          <ChevronRight size={16} />
        </IconButton>
      </div>
      {shown < latest && (
        <section className="panel stack" aria-label={`Version ${shown} of ${latest}, replaced`}>
          <Replaced messageId={message.id} version={shown} />
        </section>
      )}
    </div>
  );
}
