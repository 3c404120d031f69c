import type { UIMessage } from "ai";
import { ArrowDown } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import { branding } from "../branding.ts";
import type { Conversation } from "../chat/use-conversation.ts";
import { Alert } from "../components/alert.tsx";
import { Button, IconButton } from "../components/button.tsx";
import { Spinner } from "../components/spinner.tsx";
import { AssistantMessage, PendingAnswer } from "./assistant-message.tsx";
import "./thread.css";
import { rewindScopes } from "./rewind-scope.ts";
import { useIncrementalList } from "./use-incremental-list.ts";
import { useMeasuredMessages } from "./use-measured-messages.ts";
import { useStickToBottom } from "./use-stick-to-bottom.ts";
import { UserMessage } from "./user-message.tsx";

/** The number of suggestions that are shown before they are expanded. */
const INITIAL_COUNT = 8;

const NOTHING_REPLACED = { count: 0, isFinal: false };
const NO_REQUESTS: readonly ApprovalRequest[] = [];

/** The requests of a message; the same array if it has none. */
function requestsOf({ id }: UIMessage, requests: readonly ApprovalRequest[]) {
  return requests.some(({ messageId }) => messageId === id)
    ? requests.filter(({ messageId }) => messageId === id)
    : NO_REQUESTS;
}

function Messages({ conversation }: { readonly conversation: Conversation }) {
  const { chat, isBusy, requests } = conversation;
  const last = chat.messages.at(-1);
  const listed = useIncrementalList(chat.messages);
  const offset = chat.messages.length - listed.length;
  const replaced = rewindScopes(chat.messages);
  return (
    <>
      {listed.map((message, index) =>
        message.role === "user" ? (
          <UserMessage
            key={message.id}
            message={message}
            replaced={replaced[offset + index] ?? NOTHING_REPLACED}
          />
        ) : (
          <AssistantMessage
            key={message.id}
            message={message}
            isLast={message === last}
            isStreaming={message === last && isBusy}
            requests={requestsOf(message, requests)}
          />
        ),
      )}
      {isBusy && last?.role === "user" && <PendingAnswer />}
    </>
  );
}

interface SuggestionsProps {
  readonly suggestions: readonly string[];
  readonly onChoose: (text: string) => void;
}

function Suggestions({ suggestions, onChoose }: SuggestionsProps) {
  const [isExpanded, setExpanded] = useState(false);
  if (suggestions.length === 0) return null;
  const shown = isExpanded ? suggestions : suggestions.slice(0, INITIAL_COUNT);
  return (
    <section className="suggestions" aria-label="Suggestions">
      {shown.map((text) => (
        <Button key={text} className="suggestion" onClick={() => onChoose(text)}>
          {text}
        </Button>
      ))}
      {shown.length < suggestions.length && (
        <Button variant="subtle" onClick={() => setExpanded(true)}>
          Show all
        </Button>
      )}
    </section>
  );
}

interface WelcomeProps {
  readonly onChoose: (text: string) => void;
  readonly children: ReactNode;
}

function Welcome({ onChoose, children }: WelcomeProps) {
  const [{ welcome, suggestions, logo }] = useState(branding);
  return (
    <div className="welcome">
      <img className="welcome-logo" src={logo} alt="" />
      <h2>{welcome}</h2>
      <p className="dim">Tools that change something wait for your approval.</p>
      <Suggestions suggestions={suggestions} onChoose={onChoose} />
      {children}
    </div>
  );
}

/** Says that the connection is lost and the chat continues by itself. */
function Reconnecting({ conversation }: { readonly conversation: Conversation }) {
  return (
    <div aria-live="polite">
      {conversation.chat.isReconnecting && (
        <p className="row text-sm dim">
          <Spinner /> Reconnecting…
        </p>
      )}
    </div>
  );
}

function Problem({ conversation }: { readonly conversation: Conversation }) {
  const { problem, dismissProblem, retry, chat, isBusy } = conversation;
  if (problem === undefined || isBusy) return null;
  const hasFailed = chat.error !== undefined || chat.reconnectionError !== undefined;
  const canRetry = hasFailed && chat.refusal === undefined;
  const isDismissible = !hasFailed && chat.refusal === undefined;
  return (
    <Alert
      tone="danger"
      isAnnounced
      title="That did not work"
      onClose={isDismissible ? dismissProblem : undefined}
    >
      <p className="text-sm danger literal">{problem}</p>
      {canRetry && (
        <div>
          <Button size="sm" onClick={retry}>
            Try again
          </Button>
        </div>
      )}
    </Alert>
  );
}

/** The messages of the chat; they scroll with a streaming answer while the end is visible. */
export function Thread({ conversation }: { readonly conversation: Conversation }) {
  const { chat, send } = conversation;
  const { viewportRef, contentRef, isAtBottom, scrollToBottom } = useStickToBottom();
  const [content, setContent] = useState<HTMLElement | null>(null);
  useMeasuredMessages(content);
  const ref = useCallback(
    (element: HTMLElement | null) => {
      contentRef(element);
      setContent(element);
    },
    [contentRef],
  );
  const lastUserMessage = chat.messages.findLast(({ role }) => role === "user")?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each message that is sent is shown.
  useEffect(scrollToBottom, [lastUserMessage, scrollToBottom]);
  const isEmpty = chat.messages.length === 0;
  return (
    <div className="thread">
      <div
        ref={viewportRef}
        className="viewport"
        role="log"
        aria-label="Conversation"
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a person scrolls it with the keyboard.
        tabIndex={0}
      >
        <div ref={ref} className="column thread-content">
          {isEmpty ? (
            <Welcome onChoose={(text) => void send(text)}>
              <Problem conversation={conversation} />
            </Welcome>
          ) : (
            <>
              <h2 className="visually-hidden">Messages</h2>
              <Messages conversation={conversation} />
              <Reconnecting conversation={conversation} />
              <Problem conversation={conversation} />
            </>
          )}
        </div>
      </div>
      {!isAtBottom && (
        <IconButton
          label="Go to the newest message"
          className="scroll-to-bottom"
          variant="default"
          isRound
          onClick={scrollToBottom}
        >
          <ArrowDown size={18} />
        </IconButton>
      )}
    </div>
  );
}
