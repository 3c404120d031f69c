import { type AssistantRuntime, useExternalStoreRuntime } from "@assistant-ui/react";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { type SluiceChat, useSluiceChat } from "sluicegate/react";
import type { ApprovalRequest, Decide } from "../approvals/request.ts";
import type { Choices } from "../choices.ts";
import { inspectedFetch } from "../inspector/inspected-fetch.ts";
import { inspectedSockets } from "../inspector/inspected-sockets.ts";
import { inspectedTransports } from "../inspector/inspected-transports.ts";
import { Inspection } from "../inspector/inspection.ts";
import { WireLog } from "../inspector/log.ts";
import { API, sentenceOf } from "../server.ts";
import { type ToolPart, toolName } from "../thread/tool-states.ts";
import { type Heard, useVoice, type VoiceView } from "../voice/use-voice.ts";
import { whenBack } from "../when-back.ts";
import { chatAttachments } from "./attachments.ts";
import { type CallNotes, NoteKeeper } from "./call-notes.ts";
import { CLIENT_TOOLS } from "./client-tools.ts";
import { asThreadMessage, composedParts } from "./message-runtime.ts";
import { openRequests, sameRequests } from "./requests.ts";

/** Milliseconds between two drawings of an answer that comes in. */
const THROTTLE = 160;

/** What the parts of the page share of the chat that is open. */
export interface Conversation {
  readonly id: string;
  readonly chat: SluiceChat<UIMessage>;
  readonly runtime: AssistantRuntime;
  readonly log: WireLog;
  readonly notes: CallNotes;
  readonly requests: readonly ApprovalRequest[];
  readonly isBusy: boolean;
  readonly voice: VoiceView;
  /** A sentence about what went wrong last, and how to forget it. */
  readonly problem: string | undefined;
  readonly forget: () => void;
  readonly decide: Decide;
  readonly retry: () => void;
  readonly regenerate: (messageId: string) => void;
  readonly edit: (messageId: string, text: string) => void;
  /** Give the output of a call that the person answers by hand, or an error. */
  readonly answer: (part: ToolPart, output: unknown) => void;
}

/** The tools around one chat, made once. */
function useInstruments() {
  const [instruments] = useState(() => {
    const log = new WireLog();
    const keeper = new NoteKeeper();
    const inspection = new Inspection(log, keeper.hear);
    return {
      log,
      keeper,
      inspection,
      ai: inspectedTransports(inspection),
      fetch: inspectedFetch(inspection),
      webSocket: inspectedSockets(inspection),
    };
  });
  return instruments;
}

/** The list of open questions, the same one as long as it would be drawn the same. */
function useRequests(messages: readonly UIMessage[], unsent: Set<string>) {
  const last = useRef<readonly ApprovalRequest[]>([]);
  return useMemo(() => {
    const found = openRequests(messages, unsent);
    if (!sameRequests(found, last.current)) last.current = found;
    return last.current;
  }, [messages, unsent]);
}

interface Opened {
  readonly id: string;
  readonly messages: readonly UIMessage[];
  readonly choices: Choices;
  /** The chat has changed on the server. */
  readonly onChanged: () => void;
}

/** The chat that is open: `useChat` with a server behind it, and what the page adds. */
export function useConversation({ id, messages, choices, onChanged }: Opened): Conversation {
  const { ai, fetch, inspection, keeper, log, webSocket } = useInstruments();
  const [unsent, setUnsent] = useState(new Set<string>());
  const [problem, setProblem] = useState<string>();
  const [heard, setHeard] = useState<Heard>();
  const chat = useSluiceChat<UIMessage>({
    id,
    messages: messages as UIMessage[],
    ai,
    fetch,
    major: 7,
    webSocket,
    kind: choices.transport,
    live: choices.transport === "bidi",
    onTranscript: ({ final, role, text }) => setHeard(final ? undefined : { role, text }),
    release: choices.release,
    apiUrl: API,
    throttle: THROTTLE,
    clientTools: CLIENT_TOOLS,
    onFinish: onChanged,
    onError: onChanged,
  });
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  useEffect(() => {
    if (chat.status === "submitted") setUnsent(new Set());
  }, [chat.status]);
  const voice = useVoice(chat.voice, choices, heard);
  const notes = useSyncExternalStore(keeper.subscribe, keeper.notes);
  const requests = useRequests(chat.messages, unsent);

  const isAsking = requests.length > 0 && unsent.size === 0 && !isBusy;
  const { reload } = chat;
  useEffect(() => {
    if (!isAsking) return;
    // Meanwhile another page may have answered, or the time may have run out.
    return whenBack(() => void reload().catch(() => {}));
  }, [isAsking, reload]);

  const attempt = useCallback(async (work: () => Promise<unknown>) => {
    try {
      setProblem(undefined);
      await work();
    } catch (error) {
      setProblem(sentenceOf(error));
    }
  }, []);
  // The chat is another object at each drawing; what hangs on it must not be.
  const current = useRef(chat);
  useEffect(() => {
    current.current = chat;
    inspection.release = choices.release;
  });
  const actions = useMemo(() => {
    const decide: Decide = (approvalId, decision) => {
      setUnsent((before) => new Set(before).add(approvalId));
      const { approve, deny } = current.current;
      if (!decision.approved) return void attempt(() => deny(approvalId, decision.reason));
      const { edited, remember } = decision;
      const staged = {
        ...(edited !== undefined && { edit: edited }),
        ...(remember === true && { remember: "chat" as const }),
      };
      void attempt(() => approve(approvalId, staged));
    };
    return {
      decide,
      forget: () => setProblem(undefined),
      retry: () => void attempt(() => again(current.current)),
      regenerate: (messageId: string) =>
        void attempt(() => current.current.regenerate({ messageId })),
      edit: (messageId: string, text: string) =>
        void attempt(() => current.current.sendMessage({ text, messageId })),
      answer: (part: ToolPart, output: unknown) => {
        const call = { tool: toolName(part), toolCallId: part.toolCallId };
        const outcome =
          output instanceof Error
            ? { state: "output-error" as const, errorText: output.message }
            : { output };
        void attempt(async () => current.current.addToolOutput({ ...call, ...outcome }));
      },
    };
  }, [attempt]);

  const attachments = useMemo(() => chatAttachments(id, setProblem), [id]);
  const runtime = useExternalStoreRuntime<UIMessage>({
    messages: chat.messages,
    isRunning: isBusy,
    convertMessage: asThreadMessage,
    onNew: (message) =>
      attempt(() => current.current.sendMessage({ role: "user", parts: composedParts(message) })),
    onCancel: () => {
      inspection.stop(id);
      return attempt(() => current.current.stop());
    },
    adapters: { attachments },
  });
  const failure = chat.error ?? chat.refusal?.error ?? chat.voice.error;
  const told = problem ?? (failure && sentenceOf(failure));
  return { id, chat, runtime, log, notes, requests, isBusy, voice, problem: told, ...actions };
}

/** Ask again for what failed: the answer to a message, the rest of an answer, or all of it anew. */
function again(chat: SluiceChat<UIMessage>): Promise<void> {
  const last = chat.messages.at(-1);
  const isUnanswered =
    last?.role === "user" ||
    last?.parts.some((part) => "state" in part && part.state === "approval-responded");
  return isUnanswered ? chat.sendMessage() : chat.regenerate();
}
