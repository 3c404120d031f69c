import { type UseChatHelpers, type UseChatOptions, useChat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Voice } from "../audio/voice.ts";
import type { Levels, VoiceState } from "../audio/voice-state.ts";
import type { StoredChat } from "../chat-api.ts";
import type { ChatMessage } from "../message-parts.ts";
import { type PendingApproval, pendingApprovals } from "../pending-approvals.ts";
import { type ApproveOptions, ChatSession, type Refusal } from "./chat-session.ts";
import type { SluiceChatOptions } from "./options.ts";

/** The state and the methods of the chat's `Voice`. */
export interface VoiceControls
  extends VoiceState,
    Pick<Voice, "start" | "stop" | "mute" | "interrupt"> {
  /** The current audio levels; call it in each animation frame of a level meter. */
  readonly levels: () => Levels;
}

/** The helpers of `useChat`, with a `stop` that stops the turn on the server, and more. */
export type SluiceChat<Message extends UIMessage = UIMessage> = Omit<
  UseChatHelpers<Message>,
  "stop"
> & {
  /** The pending approvals, in order. */
  readonly pending: PendingApproval[];
  /** Approve a call; `edit` and `remember` are sent with the same request. */
  readonly approve: (approvalId: string, options?: ApproveOptions) => Promise<void>;
  /** Deny a call; the model receives the reason. */
  readonly deny: (approvalId: string, reason?: string) => Promise<void>;
  /** Stop the turn on the server; rejects if the server refuses or cannot be reached. */
  readonly stop: () => Promise<void>;
  /** Whether `stop` is in progress. */
  readonly isStopping: boolean;
  /** The `stop` of `useChat`: disconnect from the stream while the agent continues. */
  readonly disconnect: () => Promise<void>;
  /**
   * Replace the messages by those that the server stores, and resume the running turn. The outputs of
   * this page that the server does not have yet stay; they are sent if nothing else is awaited.
   */
  readonly reload: () => Promise<StoredChat<Message> | undefined>;
  /**
   * Show what has changed on the server, as another tab or device may have caused it: as `reload`,
   * but equal messages stay as they are, and so does a message that the server does not store.
   *
   * Resolves to false if a response, or a resume, began meanwhile: it may be older than the change.
   */
  readonly synchronize: () => Promise<boolean>;
  /**
   * After an error, send the last message or decisions again, or regenerate the last answer.
   * After a lost connection, first look for the answer on the server.
   */
  readonly retry: () => Promise<void>;
  /** Whether the connection is lost; the chat continues by itself when it is back. */
  readonly isReconnecting: boolean;
  /** Whether the stream of a turn that runs is being resumed after the chat was loaded. */
  readonly isResuming: boolean;
  /** Whether a resume was requested, and the server has not said yet whether a turn runs. */
  readonly isResumePending: boolean;
  /** Why the chat did not continue after the connection was lost. */
  readonly reconnectionError: Error | undefined;
  /** The voice session; requires the options `kind: "bidi"` and `live: true`. */
  readonly voice: VoiceControls;
  /** The refusal of the last request, if the chat was reloaded because of it. */
  readonly refusal: Refusal<Message> | undefined;
};

/**
 * `useChat` for a sluicegate server.
 *
 * Each `id` has its own `Chat`, so that a resumed stream replaces the message it replays in AI SDK 6
 * too. Approvals that a newer message has superseded are closed (D7), the chat is reloaded after a
 * refusal (A4), and a lost connection is resumed.
 */
export function useSluiceChat<Message extends UIMessage = UIMessage>(
  options: SluiceChatOptions<Message>,
): SluiceChat<Message> {
  const { id, resume = true, throttle } = options;
  const [session, setSession] = useState(() => new ChatSession(options));
  const isOtherChat = id !== undefined && session.chat.id !== id;
  if (isOtherChat) setSession(new ChatSession(options));

  // Must run before the effects of `useChat`, which may send or resume.
  useEffect(() => session.update(options));
  useEffect(() => () => session.disconnect(), [session]);

  const chatOptions: UseChatOptions<Message> = { chat: session.chat, resume };
  // The option has a different name in each major.
  const throttling = throttle === undefined ? {} : { throttle, experimental_throttle: throttle };
  const helpers = useChat<Message>({ ...chatOptions, ...throttling });
  const state = useSyncExternalStore(session.subscribe, session.getSnapshot, session.getSnapshot);
  const voice = useMemo(() => ({ ...state.voice, ...session.voice }), [state.voice, session.voice]);
  const { messages, stop: disconnect } = helpers;
  const pending = useMemo(() => pendingApprovals(messages as readonly ChatMessage[]), [messages]);
  return {
    ...helpers,
    ...state,
    addToolApprovalResponse: session.addToolApprovalResponse,
    approve: session.approve,
    deny: session.deny,
    disconnect,
    pending,
    reload: session.reload,
    retry: session.retry,
    synchronize: session.synchronize,
    stop: session.stop,
    voice,
  };
}
