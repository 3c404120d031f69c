import { type UseChatHelpers, type UseChatOptions, useChat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Levels, Voice, VoiceState } from "../audio/voice.ts";
import type { ChatMessage } from "../messages.ts";
import { type PendingApproval, pendingApprovals } from "../pending-approvals.ts";
import type { StoredChat } from "../stored-chat.ts";
import { type ApproveOptions, ChatSession, type Refusal } from "./chat-session.ts";
import type { SluiceChatOptions } from "./options.ts";

/** What can be done with a voice, and how it is with it. */
export interface VoiceControls
  extends VoiceState,
    Pick<Voice, "start" | "stop" | "mute" | "interrupt"> {
  /** How loud it is; to be asked for at each frame of a meter. */
  readonly levels: () => Levels;
}

/** What `useSluiceChat` gives: all of `useChat`, with a `stop` that stops, and more. */
export type SluiceChat<Message extends UIMessage = UIMessage> = Omit<
  UseChatHelpers<Message>,
  "stop"
> & {
  /** What waits for a person, in order. */
  readonly pending: PendingApproval[];
  /** Say yes; `edit` and `remember` travel with the request that sends the answer. */
  readonly approve: (approvalId: string, options?: ApproveOptions) => Promise<void>;
  /** Say no; the reason reaches the model. */
  readonly deny: (approvalId: string, reason?: string) => Promise<void>;
  /** Stop the turn on the server; rejects if the server cannot be reached or refuses. */
  readonly stop: () => Promise<void>;
  /** Whether a stop is under way. */
  readonly isStopping: boolean;
  /** The `stop` of `useChat`: leave the stream, and the agent goes on. */
  readonly leave: () => Promise<void>;
  /** Show the chat as the server holds it. */
  readonly reload: () => Promise<StoredChat<Message> | undefined>;
  /** The conversation by voice; needs the options `kind: "bidi"` and `live: true`. */
  readonly voice: VoiceControls;
  /** Why the last request was refused, if the chat was loaded anew because of it. */
  readonly refusal: Refusal<Message> | undefined;
};

/**
 * `useChat` for a sluicegate server.
 *
 * The chat is a `Chat` of its own for each `id`, so that a resume replaces what it repeats in AI
 * SDK 6 too. Cards that new text has closed are patched (D7), and after a 404 or a 409 the chat is
 * loaded anew (A4).
 */
export function useSluiceChat<Message extends UIMessage = UIMessage>(
  options: SluiceChatOptions<Message>,
): SluiceChat<Message> {
  const { id, resume = true, throttle } = options;
  const [session, setSession] = useState(() => new ChatSession(options));
  const isOther = id !== undefined && session.chat.id !== id;
  if (isOther) setSession(new ChatSession(options));

  // Before the effects of `useChat`, which may send or resume.
  useEffect(() => session.update(options));
  useEffect(() => () => session.leave(), [session]);

  const own: UseChatOptions<Message> = { chat: session.chat, resume };
  // The two majors name it differently.
  const throttled = throttle === undefined ? {} : { throttle, experimental_throttle: throttle };
  const helpers = useChat<Message>({ ...own, ...throttled });
  const { isStopping, refusal } = useSyncExternalStore(
    session.subscribe,
    session.state,
    session.state,
  );
  const { voice } = session;
  const spoken = useSyncExternalStore(voice.subscribe, voice.state, voice.state);
  const controls = useMemo(
    () => ({
      ...spoken,
      start: voice.start,
      stop: voice.stop,
      mute: voice.mute,
      interrupt: voice.interrupt,
      levels: () => voice.levels,
    }),
    [spoken, voice],
  );
  const { messages, stop: leave } = helpers;
  const pending = useMemo(() => pendingApprovals(messages as readonly ChatMessage[]), [messages]);
  return {
    ...helpers,
    addToolApprovalResponse: session.answer,
    approve: session.approve,
    deny: session.deny,
    isStopping,
    leave,
    pending,
    refusal,
    reload: session.reload,
    stop: session.stop,
    voice: controls,
  };
}
