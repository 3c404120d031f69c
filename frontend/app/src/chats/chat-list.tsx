import "./chat-list.css";
// The style of the dialog comes with the page: a stylesheet that failed once is not loaded again.
import "../components/dialog.css";
import { Pencil, Plus } from "lucide-react";
import { useState } from "react";
import type { ChatSummary } from "../api.ts";
import { Badge } from "../components/badge.tsx";
import { Button, IconButton } from "../components/button.tsx";
import { PageLink } from "../components/page-link.tsx";
import { Spinner } from "../components/spinner.tsx";
import { TextField } from "../components/text-field.tsx";
import { lazyImport, useLazyImport } from "../components/use-lazy-import.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { chatDate } from "./chat-date.ts";
import type { Chats } from "./use-chats.ts";

const manageChatDialog = lazyImport(
  async () => (await import("./manage-chat-dialog.tsx")).ManageChatDialog,
);

interface RowProps {
  readonly chat: ChatSummary;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  readonly onSettings: () => void;
}

function Row({ chat, isOpen, onOpen, onSettings }: RowProps) {
  const title = visibleName(chat.title ?? "") || "Without a title";
  const count = chat.pendingApprovals;
  return (
    <li className="chat-row" data-open={isOpen}>
      <PageLink
        className="chat-link"
        title={title}
        href={`?chat=${encodeURIComponent(chat.id)}`}
        aria-current={isOpen ? "page" : undefined}
        onOpen={onOpen}
      >
        <span className="ellipsis grow">{title}</span>{" "}
        <time className="text-xs dim no-shrink" dateTime={chat.updatedAt}>
          {chatDate(chat.updatedAt, new Date())}
        </time>{" "}
        {chat.status === "running" && (
          <span className="running" role="img" aria-label="Running" title="Running">
            <Spinner />
          </span>
        )}{" "}
        {count > 0 && (
          <Badge
            tone="accent"
            role="img"
            aria-label={count === 1 ? "1 approval waits" : `${count} approvals wait`}
          >
            {count}
          </Badge>
        )}
      </PageLink>
      <IconButton
        label={`Rename or delete: ${title}`}
        size="sm"
        className="chat-settings"
        onClick={onSettings}
      >
        <Pencil size={14} />
      </IconButton>
    </li>
  );
}

interface ChatListProps {
  readonly chats: Chats;
  readonly query: string;
  readonly onQuery: (query: string) => void;
  readonly openId: string;
  readonly onOpen: (id: string) => void;
  readonly onNew: () => void;
}

/** The list of chats, with search and the settings of each chat. */
export function ChatList({ chats, query, onQuery, openId, onOpen, onNew }: ChatListProps) {
  const [settingsOf, setSettingsOf] = useState<ChatSummary>();
  const [ManageChatDialog, loadDialog, loadProblem] = useLazyImport(manageChatDialog);
  const openSettings = async (chat: ChatSummary) => {
    if (await loadDialog()) setSettingsOf(chat);
  };
  const problem = loadProblem ?? chats.problem;
  return (
    <>
      <div className="stack chat-list-header">
        <Button variant="primary" icon={<Plus size={16} />} onClick={onNew}>
          New chat
        </Button>
        <TextField
          type="search"
          aria-label="Search chats"
          placeholder="Search chats"
          value={query}
          onChange={onQuery}
        />
      </div>
      <ul className="plain-list chat-list" aria-label="Chats">
        {chats.chats.map((chat) => (
          <Row
            key={chat.id}
            chat={chat}
            isOpen={chat.id === openId}
            onOpen={() => onOpen(chat.id)}
            onSettings={() => void openSettings(chat)}
          />
        ))}
      </ul>
      {problem !== undefined && (
        <p className="chat-list-note text-sm danger" role="alert">
          {problem}
        </p>
      )}
      {chats.isEmpty && (
        <p className="chat-list-note text-sm dim">
          {query === ""
            ? "No chats yet. Your first message starts one."
            : "No chat has this in its title."}
        </p>
      )}
      {chats.hasMore && (
        <div className="chat-list-note">
          <Button variant="subtle" size="sm" onClick={() => void chats.loadMore()}>
            Show more
          </Button>
        </div>
      )}
      {settingsOf !== undefined && ManageChatDialog !== undefined && (
        <ManageChatDialog
          chat={settingsOf}
          onClose={() => setSettingsOf(undefined)}
          onRenamed={() => void chats.refresh()}
          onDeleted={() => {
            void chats.refresh();
            if (settingsOf.id === openId) onNew();
          }}
        />
      )}
    </>
  );
}
