import { type AssistantRuntime, useExternalStoreRuntime } from "@assistant-ui/react";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { type SluiceChat, useSluiceChat } from "sluicegate/react";
import { API_URL, errorMessage } from "../api.ts";
import {
  type ApprovalRequest,
  approvalRequests,
  areSameRequests,
  type Decide,
} from "../approvals/approval-requests.ts";
import {
  createRecordedFetch,
  createRecordedSocket,
  createRecordingTransports,
} from "../inspector/recording-transports.ts";
import { WireLog, WireRecorder } from "../inspector/wire-log.ts";
import { onPageVisible } from "../page-visibility.ts";
import type { Preferences } from "../preferences.ts";
import { type ToolPart, toolName } from "../thread/tool-states.ts";
import { type LiveTranscript, useVoice, type VoiceSession } from "../voice/use-voice.ts";
import { chatAttachments } from "./attachments.ts";
import { CLIENT_TOOLS } from "./client-tools.ts";
import { toMessageParts, toThreadMessage } from "./message-runtime.ts";
import { type ToolProgress, ToolProgressStore } from "./tool-progress.ts";

/** Milliseconds between two renderings of a streaming answer. */
const THROTTLE = 160;

/** The state and the actions of the open chat. */
export interface Conversation {
  readonly id: string;
  readonly chat: SluiceChat<UIMessage>;
  readonly runtime: AssistantRuntime;
  readonly log: WireLog;
  readonly toolProgress: ToolProgress;
  readonly requests: readonly ApprovalRequest[];
  readonly isBusy: boolean;
  readonly voice: VoiceSession;
  /** The message of the last error. */
  readonly problem: string | undefined;
  readonly dismissProblem: () => void;
  readonly decide: Decide;
  readonly retry: () => void;
  readonly regenerate: (messageId: string) => void;
  readonly edit: (messageId: string, text: string) => void;
  /** Add the output of a client-side call that the person fulfils, or an error. */
  readonly addOutput: (part: ToolPart, output: unknown) => void;
}

/** The recorded transports of one chat, and the stores that they update; created once. */
function useRecordingTransports() {
  const [transports] = useState(() => {
    const log = new WireLog();
    const progressStore = new ToolProgressStore();
    const recorder = new WireRecorder(log, progressStore.onChunk);
    return {
      log,
      progressStore,
      recorder,
      ai: createRecordingTransports(recorder),
      fetch: createRecordedFetch(recorder),
      webSocket: createRecordedSocket(recorder),
    };
  });
  return transports;
}

/** The open approval requests; the same array as long as they render the same. */
function useApprovalRequests(messages: readonly UIMessage[], unsent: Set<string>) {
  const last = useRef<readonly ApprovalRequest[]>([]);
  return useMemo(() => {
    const requests = approvalRequests(messages, unsent);
    if (!areSameRequests(requests, last.current)) last.current = requests;
    return last.current;
  }, [messages, unsent]);
}

interface ConversationOptions {
  readonly id: string;
  /** The stored messages of the chat. */
  readonly messages: readonly UIMessage[];
  readonly preferences: Preferences;
  /** Called when the stored chat has changed. */
  readonly onChanged: () => void;
}

/** The open chat: `useSluiceChat`, with the state and the actions that the page adds. */
export function useConversation(options: ConversationOptions): Conversation {
  const { id, messages, preferences, onChanged } = options;
  const { ai, fetch, log, progressStore, recorder, webSocket } = useRecordingTransports();
  const [unsent, setUnsent] = useState(new Set<string>());
  const [problem, setProblem] = useState<string>();
  const [transcript, setTranscript] = useState<LiveTranscript>();
  const chat = useSluiceChat<UIMessage>({
    id,
    messages: messages as UIMessage[],
    ai,
    fetch,
    major: 7,
    webSocket,
    kind: preferences.transport,
    live: preferences.transport === "bidi",
    onTranscript: ({ final, role, text }) => setTranscript(final ? undefined : { role, text }),
    release: preferences.release,
    apiUrl: API_URL,
    throttle: THROTTLE,
    clientTools: CLIENT_TOOLS,
    onFinish: onChanged,
    onError: onChanged,
  });
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  useEffect(() => {
    if (chat.status === "submitted") setUnsent(new Set());
  }, [chat.status]);
  const voice = useVoice(chat.voice, preferences, transcript);
  const toolProgress = useSyncExternalStore(progressStore.subscribe, progressStore.getSnapshot);
  const requests = useApprovalRequests(chat.messages, unsent);

  const isPending = requests.length > 0 && unsent.size === 0 && !isBusy;
  const { reload } = chat;
  useEffect(() => {
    if (!isPending) return;
    // Meanwhile the requests may have been decided in another page, or may have expired.
    return onPageVisible(() => void reload().catch(() => {}));
  }, [isPending, reload]);

  const attempt = useCallback(async (action: () => Promise<unknown>) => {
    try {
      setProblem(undefined);
      await action();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  }, []);
  // `chat` is a new object on each rendering; the actions must keep their identity.
  const chatRef = useRef(chat);
  useEffect(() => {
    chatRef.current = chat;
    recorder.release = preferences.release;
  });
  const actions = useMemo(() => {
    const decide: Decide = (approvalId, decision) => {
      setUnsent((before) => new Set(before).add(approvalId));
      const { approve, deny } = chatRef.current;
      if (!decision.approved) return void attempt(() => deny(approvalId, decision.reason));
      const { approved: _, ...approveOptions } = decision;
      void attempt(() => approve(approvalId, approveOptions));
    };
    return {
      decide,
      dismissProblem: () => setProblem(undefined),
      retry: () => void attempt(() => retryLast(chatRef.current)),
      regenerate: (messageId: string) =>
        void attempt(() => chatRef.current.regenerate({ messageId })),
      edit: (messageId: string, text: string) =>
        void attempt(() => chatRef.current.sendMessage({ text, messageId })),
      addOutput: (part: ToolPart, output: unknown) => {
        const call = { tool: toolName(part), toolCallId: part.toolCallId };
        const outcome =
          output instanceof Error
            ? { state: "output-error" as const, errorText: output.message }
            : { output };
        void attempt(async () => chatRef.current.addToolOutput({ ...call, ...outcome }));
      },
    };
  }, [attempt]);

  const attachments = useMemo(() => chatAttachments(id, setProblem), [id]);
  const runtime = useExternalStoreRuntime<UIMessage>({
    messages: chat.messages,
    isRunning: isBusy,
    convertMessage: toThreadMessage,
    onNew: (message) =>
      attempt(() => chatRef.current.sendMessage({ role: "user", parts: toMessageParts(message) })),
    onCancel: () => {
      recorder.stop(id);
      return attempt(() => chatRef.current.stop());
    },
    adapters: { attachments },
  });
  const error = chat.error ?? chat.refusal?.error ?? chat.voice.error;
  return {
    id,
    chat,
    runtime,
    log,
    toolProgress,
    requests,
    isBusy,
    voice,
    problem: problem ?? (error && errorMessage(error)),
    ...actions,
  };
}

/** Send the unanswered message or decisions again, or else regenerate the last answer. */
function retryLast(chat: SluiceChat<UIMessage>): Promise<void> {
  const last = chat.messages.at(-1);
  const isUnanswered =
    last?.role === "user" ||
    last?.parts.some((part) => "state" in part && part.state === "approval-responded");
  return isUnanswered ? chat.sendMessage() : chat.regenerate();
}
