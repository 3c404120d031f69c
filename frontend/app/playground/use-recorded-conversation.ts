import type { UIMessage } from "ai";
import { useMemo, useRef, useState } from "react";
import { useSluiceChat } from "sluicegate/react";
import { approvalRequests, noGroups } from "../src/approvals/approval-requests.ts";
import type { Decide } from "../src/approvals/decision.ts";
import type { Conversation } from "../src/chat/use-conversation.ts";
import { callNumbers } from "../src/thread/call-numbers.ts";
import { RecordedTransport } from "./recorded-transport.ts";
import approved from "./recordings/approved.jsonl?raw";
import denied from "./recordings/denied.jsonl?raw";

class Recorded extends RecordedTransport {
  constructor() {
    super(approved, denied);
  }
}

const TRANSPORTS = { DefaultChatTransport: Recorded };

/** Answers every request as a server without chats. */
const noServer: typeof fetch = async () => new Response(null, { status: 404 });

function unavailable(): void {}

/** A conversation of the page that plays a recording; it has no server, no voice and no files. */
export function useRecordedConversation(id: string): Conversation {
  const chat = useSluiceChat<UIMessage>({ id, ai: TRANSPORTS, fetch: noServer, resume: false });
  const groups = useRef(noGroups());
  const [decisions] = useState(() => new Map());
  const { approve, deny, messages, sendMessage, voice } = chat;
  const actions = useMemo(() => {
    const decide: Decide = (approvalId, decision) =>
      void (decision.approved ? approve(approvalId) : deny(approvalId, decision.reason));
    const send = async (text: string) => {
      void sendMessage({ text });
      return true;
    };
    return { decide, send };
  }, [approve, deny, sendMessage]);
  return {
    id,
    chat,
    toolProgress: useMemo(() => new Map(), []),
    callNumbers: useMemo(() => callNumbers(messages), [messages]),
    requests: useMemo(
      () => approvalRequests(messages, decisions, groups.current),
      [messages, decisions],
    ),
    isBusy: chat.status === "submitted" || chat.status === "streaming",
    // Messages of a recording cannot be replaced, as those of a live connection.
    isLive: true,
    isSpoken: false,
    isContinuing: false,
    mustQueue: false,
    open: [],
    voice: { controls: voice, transcript: undefined, start: unavailable },
    problem: chat.error?.message,
    dismissProblem: unavailable,
    stop: () => void chat.disconnect(),
    decisions,
    retry: unavailable,
    regenerate: unavailable,
    edit: unavailable,
    addOutput: unavailable,
    ...actions,
  };
}
