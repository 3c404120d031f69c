import type { UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type SluiceChat, useSluiceChat } from "sluicegate/react";
import { API_URL } from "../api.ts";
import {
  type ApprovalRequest,
  approvalRequests,
  areSameRequests,
  noGroups,
} from "../approvals/approval-requests.ts";
import type { Decide, DecisionsInProgress } from "../approvals/decision.ts";
import { useDecisions } from "../approvals/use-decisions.ts";
import { errorMessage } from "../error-message.ts";
import { ListedWebSocket } from "../inspector/open-sockets.ts";
import { onVisibleOrOnline } from "../on-visible-or-online.ts";
import type { Preferences } from "../preferences.ts";
import { areSameNumbers, type CallNumbers, callNumbers } from "../thread/call-numbers.ts";
import { isToolPart, type ToolPart, toolName } from "../thread/tool-part.ts";
import {
  type LiveTranscript,
  useVoiceTransport,
  type VoiceSession,
} from "../voice/use-voice-transport.ts";
import { CLIENT_TOOLS } from "./get-location-tool.ts";
import { sendRule } from "./send-rule.ts";
import { sizeProblem, storeFiles } from "./store-files.ts";
import { type ToolProgress, withProgress } from "./tool-progress.ts";
import { useCaughtUpMessages } from "./use-caught-up-messages.ts";
import { YIELDING_TRANSPORTS } from "./yielding-transports.ts";

/** Milliseconds between two renderings of a streaming answer. */
const THROTTLE = 160;

/** The state and the actions of the open chat. */
export interface Conversation {
  readonly id: string;
  readonly chat: SluiceChat<UIMessage>;
  readonly toolProgress: ToolProgress;
  readonly callNumbers: CallNumbers;
  readonly requests: readonly ApprovalRequest[];
  readonly isBusy: boolean;
  /** Whether a message waits until the chat can take it. */
  readonly mustQueue: boolean;
  /** What a message would withdraw: the ids of the approvals and of the calls that wait. */
  readonly open: readonly string[];
  /** Whether the turn goes on after a decision, and this page does not read it yet. */
  readonly isContinuing: boolean;
  /** Whether messages are sent over a live connection, which replaces none. */
  readonly isLive: boolean;
  /** Whether the person speaks with the agent. */
  readonly isSpoken: boolean;
  readonly voice: VoiceSession;
  /** The message of the last error. */
  readonly problem: string | undefined;
  readonly dismissProblem: () => void;
  /** Store the files and send a message; false if a file could not be stored. */
  readonly send: (text: string, files?: readonly File[]) => Promise<boolean>;
  readonly stop: () => void;
  readonly decide: Decide;
  readonly decisions: DecisionsInProgress;
  readonly retry: () => void;
  readonly regenerate: (messageId: string) => void;
  readonly edit: (messageId: string, text: string) => void;
  /** Add the output of a client-side call that the person fulfils, or an error. */
  readonly addOutput: (part: ToolPart, output: unknown) => void;
}

/** The open approval requests; the same array as long as they render the same. */
function useApprovalRequests(messages: readonly UIMessage[], decisions: DecisionsInProgress) {
  const last = useRef<readonly ApprovalRequest[]>([]);
  const groups = useRef(noGroups());
  return useMemo(() => {
    const requests = approvalRequests(messages, decisions, groups.current);
    if (!areSameRequests(requests, last.current)) last.current = requests;
    return last.current;
  }, [messages, decisions]);
}

/** The numbers of the tool calls; the same map as long as they are equal. */
function useCallNumbers(messages: readonly UIMessage[]) {
  const last = useRef<CallNumbers>(new Map());
  return useMemo(() => {
    const numbers = callNumbers(messages);
    if (!areSameNumbers(numbers, last.current)) last.current = numbers;
    return last.current;
  }, [messages]);
}

/** The ids of what waits for a person or this page; the same array as long as they are equal. */
function useOpenIds(messages: readonly UIMessage[], requests: readonly ApprovalRequest[]) {
  const last = useRef<readonly string[]>([]);
  return useMemo(() => {
    const parts = (messages.at(-1)?.parts ?? []) as readonly { readonly type: string }[];
    const calls = parts
      .filter(isToolPart)
      .filter(({ state, providerExecuted }) => state === "input-available" && !providerExecuted);
    const ids = [
      ...requests.map(({ approvalId }) => approvalId),
      ...calls.map(({ toolCallId }) => toolCallId),
    ];
    if (ids.join() !== last.current.join()) last.current = ids;
    return last.current;
  }, [messages, requests]);
}

interface ConversationOptions {
  readonly id: string;
  /** The stored messages of the chat. */
  readonly messages: readonly UIMessage[];
  /** Whether the server has died during the last answer. */
  readonly isInterrupted: boolean;
  readonly preferences: Preferences;
  /** Replaces the browser's own. */
  readonly fetch: typeof fetch | undefined;
  /** Called when the stored chat has changed. */
  readonly onChanged: () => void;
}

/** The open chat: `useSluiceChat`, with the state and the actions that the page adds. */
export function useConversation(options: ConversationOptions): Conversation {
  const { id, messages, isInterrupted, preferences, fetch, onChanged } = options;
  const [toolProgress, setToolProgress] = useState<ToolProgress>(new Map());
  const [problem, setProblem] = useState<string>();
  const [transcript, setTranscript] = useState<LiveTranscript>();
  const sluiceChat = useSluiceChat<UIMessage>({
    id,
    messages: messages as UIMessage[],
    ai: YIELDING_TRANSPORTS,
    fetch,
    webSocket: ListedWebSocket,
    kind: preferences.transport,
    live: preferences.transport === "bidi",
    onTranscript: ({ final, role, text }) => setTranscript(final ? undefined : { role, text }),
    release: preferences.release,
    apiUrl: API_URL,
    throttle: THROTTLE,
    clientTools: CLIENT_TOOLS,
    sendAutomaticallyWhen: sendRule,
    onData: (part) => setToolProgress((progress) => withProgress(progress, part)),
    onFinish: onChanged,
    onError: onChanged,
  });
  const isStreaming = sluiceChat.status === "submitted" || sluiceChat.status === "streaming";
  const isBusy = isStreaming || sluiceChat.isReconnecting || sluiceChat.isResuming;
  const isResuming =
    sluiceChat.isReconnecting || sluiceChat.isResuming || sluiceChat.isResumePending;
  const messagesToShow = useCaughtUpMessages(sluiceChat.messages, { isBusy, isResuming });
  const chat = { ...sluiceChat, messages: messagesToShow };
  const voice = useVoiceTransport(chat.voice, preferences, transcript);
  // `chat` is a new object on each rendering; the actions must keep their identity.
  const chatRef = useRef(chat);
  useEffect(() => {
    chatRef.current = chat;
  });
  const { decisions, isContinuing, decide } = useDecisions({
    chat: chatRef,
    fetch,
    onRefused: setProblem,
    onAccepted: () => {
      setProblem(undefined);
      onChanged();
    },
  });
  const { isReconnecting } = chat;
  useEffect(() => {
    // What failed without a connection was repeated, or is shown as it is stored.
    if (!isReconnecting) setProblem(undefined);
  }, [isReconnecting]);
  const requests = useApprovalRequests(chat.messages, decisions);

  const isPending = requests.length > 0 && !isBusy;
  const { reload } = chat;
  useEffect(() => {
    if (isInterrupted) void reload().catch(() => {});
  }, [isInterrupted, reload]);
  useEffect(() => {
    if (!isPending) return;
    // Meanwhile the requests may have been decided in another page, or may have expired.
    return onVisibleOrOnline(() => void reload().catch(() => {}));
  }, [isPending, reload]);

  const attempt = useCallback(async (action: () => Promise<unknown>) => {
    try {
      setProblem(undefined);
      await action();
    } catch (error) {
      setProblem(errorMessage(error));
    }
  }, []);
  const warned = useRef("");
  const actions = useMemo(() => {
    const send = async (text: string, files: readonly File[] = []) => {
      setProblem(sizeProblem(files));
      if (sizeProblem(files) !== undefined) return false;
      try {
        const stored = await storeFiles(id, files);
        const warning = stored.notices.join(" ");
        if (warning !== "" && warning !== warned.current) {
          // A second press sends the files by their names.
          warned.current = warning;
          setProblem(`${warning} Send again to send the message with its name, or remove it.`);
          return false;
        }
        warned.current = "";
        const parts: UIMessage["parts"] = stored.parts;
        if (text.trim() !== "") parts.push({ type: "text", text });
        // The request ends with the answer.
        void attempt(() => chatRef.current.sendMessage({ role: "user", parts }));
        return true;
      } catch (error) {
        setProblem(errorMessage(error));
        return false;
      }
    };
    return {
      send,
      stop: () => void attempt(() => chatRef.current.stop()),
      dismissProblem: () => setProblem(undefined),
      retry: () => void attempt(() => chatRef.current.retry()),
      regenerate: (messageId: string) =>
        void attempt(() => chatRef.current.regenerate({ messageId })),
      edit: (messageId: string, text: string) => {
        const message = chatRef.current.messages.find(({ id }) => id === messageId);
        const parts: UIMessage["parts"] =
          message?.parts.filter(({ type }) => type === "file") ?? [];
        parts.push({ type: "text", text });
        void attempt(() => chatRef.current.sendMessage({ role: "user", parts, messageId }));
      },
      addOutput: (part: ToolPart, output: unknown) => {
        const call = { tool: toolName(part), toolCallId: part.toolCallId };
        const outcome =
          output instanceof Error
            ? { state: "output-error" as const, errorText: output.message }
            : { output };
        void attempt(async () => chatRef.current.addToolOutput({ ...call, ...outcome }));
      },
    };
  }, [attempt, id]);

  const error = chat.reconnectionError ?? chat.error ?? chat.refusal?.error ?? chat.voice.error;
  return {
    id,
    chat,
    toolProgress,
    callNumbers: useCallNumbers(chat.messages),
    requests,
    isBusy,
    mustQueue: isBusy || isContinuing || chat.isResumePending,
    open: useOpenIds(chat.messages, requests),
    isContinuing,
    isLive: preferences.transport === "bidi",
    isSpoken: chat.voice.status === "on",
    voice,
    problem: problem ?? (error && errorMessage(error)),
    decide,
    decisions,
    ...actions,
  };
}
