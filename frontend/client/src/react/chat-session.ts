import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { closedApproval, withClosedApproval, withDecidedApproval } from "../approval-updates.ts";
import { OFF, type VoiceState } from "../audio/voice-state.ts";
import { loadChat, type StoredChat, stopChat } from "../chat-api.ts";
import { ClientToolExecutor, openCalls } from "../client-tool-executor.ts";
import {
  hasSameText,
  isSameHistory,
  storedVersion,
  withStoredMetadata,
  withUnsentOutputs,
} from "../compare-with-stored-history.ts";
import { type ChatMessage, isUnsettledDecision } from "../message-parts.ts";
import { pendingApprovals } from "../pending-approvals.ts";
import { RequestRefused } from "../refusals.ts";
import { type SafeSendRule, type SendRule, sendAutomaticallyWhen } from "../send-automatically.ts";
import { type StagedDecision, StagedDecisions } from "../staged-decision-extras.ts";
import { LazyVoice } from "./lazy-voice.ts";
import type { SluiceChatOptions } from "./options.ts";
import { isConnectionLoss, Reconnection } from "./reconnection.ts";
import { SwitchingTransport } from "./switching-transport.ts";

/** A request that was refused, or stopped before the server had it; the chat was reloaded. */
export interface Refusal<Message> {
  readonly error: RequestRefused;
  /** The user message that the server did not accept; it was removed from the chat. */
  readonly unsent?: Message;
}

/** The state of a session in addition to that of its chat. */
export interface SessionState<Message> {
  readonly isStopping: boolean;
  /** Whether the connection is lost and the chat continues by itself when it is back. */
  readonly isReconnecting: boolean;
  /** Whether the stream of a turn that runs is being resumed. */
  readonly isResuming: boolean;
  /** Whether a resume was requested, and the server has not said yet whether a turn runs. */
  readonly isResumePending: boolean;
  /** Why the chat did not continue after the connection was lost. */
  readonly reconnectionError: Error | undefined;
  /** The refusal of the last request; undefined once another request was accepted. */
  readonly refusal: Refusal<Message> | undefined;
  readonly voice: VoiceState;
}

/** The options of `approve`. */
export interface ApproveOptions extends StagedDecision {
  readonly reason?: string;
}

type ApprovalResponse = Parameters<Chat<UIMessage>["addToolApprovalResponse"]>[0];
type OnFinish = NonNullable<SluiceChatOptions["onFinish"]>;
type FinishEvent = Parameters<OnFinish>[0];

const STOP_TIMEOUT = 10_000;
const LOAD_TIMEOUT = 10_000;
const INTERRUPTED = "The answer was interrupted. Try again.";
const NOT_SENT = "The message was stopped before the server had it.";
/** The status that stands for a request that its client has ended. */
const CLIENT_ENDED = 499;

/** The AI SDK's `Chat` of one page, extended by the features of a sluicegate server. */
export class ChatSession<Message extends UIMessage> {
  readonly chat: Chat<Message>;
  /** The voice session, over a live connection. */
  readonly voice: LazyVoice;
  readonly #transport: SwitchingTransport<Message>;
  readonly #staged = new StagedDecisions();
  readonly #toolExecutor = new ClientToolExecutor();
  readonly #safeRule: SafeSendRule;
  /** Approvals decided in this page, which the server may not have accepted yet. */
  readonly #decidedLocally = new Set<string>();
  /** Messages closed by a newer one, which were loaded with what they had held back. */
  readonly #released = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #options: SluiceChatOptions<Message>;
  /** Resolves when the last disconnect has ended its request. */
  #disconnected: Promise<void> = Promise.resolve();
  #state: SessionState<Message> = {
    isStopping: false,
    isReconnecting: false,
    isResuming: false,
    isResumePending: false,
    reconnectionError: undefined,
    refusal: undefined,
    voice: OFF,
  };
  /** Whether the person has stopped a request that the server may not have. */
  #isStopped = false;
  #resumeTimer: ReturnType<typeof setTimeout> | undefined;
  /** The id of the last answer that was continued after the server had died. */
  #continuedAnswer: string | undefined;
  readonly #reconnection = new Reconnection(
    () => this.#recover(),
    (isReconnecting, error) => this.#set({ isReconnecting, reconnectionError: error }),
  );

  constructor(options: SluiceChatOptions<Message>) {
    this.#options = options;
    const { clientTools, id, messages, generateId } = options;
    const { dataPartSchemas, messageMetadataSchema } = options;
    this.#safeRule = sendAutomaticallyWhen(
      clientTools === undefined ? {} : { clientTools: Object.keys(clientTools) },
    );
    this.#transport = new SwitchingTransport(options, () => this.chat.id, {
      onApproval: (approval) =>
        this.#setMessages((messages) => withDecidedApproval(messages, approval)),
      requestBody: this.#staged.body,
      onAccepted: (sent) => this.#onAccepted(sent as readonly ChatMessage[]),
      onNoActiveTurn: () => this.#executeOpenCalls(),
      onResume: (isRequested) => this.#onResume(isRequested),
    });
    this.voice = new LazyVoice(
      async () => {
        const [{ createChatVoice }] = await Promise.all([
          import("./create-chat-voice.ts"),
          this.#transport.load(),
        ]);
        return createChatVoice<Message>({
          transport: () => this.#transport.liveTransport(),
          options: () => this.#options,
          setMessages: (update) => this.#setMessages(update),
          whenIdle: () => this.#whenIdle(),
          resume: (messageId) => this.chat.resumeStream({ body: { messageId } }),
        });
      },
      (voice) => this.#set({ voice }),
    );
    this.chat = new Chat<Message>({
      transport: this.#transport,
      sendAutomaticallyWhen: ({ messages }) => this.#shouldSend(messages),
      onData: (part) => {
        this.#onDataPart(part);
        this.#options.onData?.(part);
      },
      onError: (error) => {
        this.#onRequestError(error);
        this.#options.onError?.(error);
      },
      onFinish: (event) => {
        this.#onResponseEnd(event as FinishEvent);
        this.#options.onFinish?.(event);
      },
      onToolCall: (call) => this.#options.onToolCall?.(call),
      ...(id !== undefined && { id }),
      ...(messages !== undefined && { messages: [...messages] }),
      ...(generateId !== undefined && { generateId }),
      ...(dataPartSchemas !== undefined && { dataPartSchemas }),
      ...(messageMetadataSchema !== undefined && { messageMetadataSchema }),
    });
  }

  /** Apply the options of the last rendering; those of the `Chat` itself do not change. */
  update(options: SluiceChatOptions<Message>): void {
    this.#options = options;
    this.#transport.options = options;
    const isLive = options.kind === "bidi" && options.live === true;
    if (!isLive && this.#state.voice.status !== "off") void this.voice.stop();
    if (!this.#isBusy) this.#transport.closeUnused();
  }

  readonly getSnapshot = (): SessionState<Message> => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Approve a call; the edit and the grant are sent with the same request. */
  readonly approve = async (
    approvalId: string,
    { reason, ...decision }: ApproveOptions = {},
  ): Promise<void> => {
    this.#staged.stage(approvalId, decision);
    await this.#decide(approvalId, true, reason);
  };

  readonly deny = async (approvalId: string, reason?: string): Promise<void> => {
    this.#staged.clear([approvalId]);
    await this.#decide(approvalId, false, reason);
  };

  readonly addToolApprovalResponse = async (response: ApprovalResponse): Promise<void> => {
    this.#decidedLocally.add(response.id);
    await this.chat.addToolApprovalResponse(response);
  };

  /**
   * Stop the turn on the server and wait for the end of the stream, which releases held output. If
   * no response is streaming, the chat is reloaded, since a stop closes its pending approvals.
   *
   * Rejects with the errors of `stopChat`; the stream is disconnected in that case too. Without a
   * connection, the chat is reloaded when it is back, and a message that was lost with it is unsent.
   */
  readonly stop = async (): Promise<void> => {
    this.#toolExecutor.abort();
    this.#reconnection.stop();
    this.#set({ isStopping: true });
    const { chatUrl: api, headers, fetch } = this.#transport;
    const { credentials } = this.#options;
    try {
      await stopChat({ api, chatId: this.chat.id, headers, fetch, credentials });
      if (this.#isBusy) await this.#waitForEnd();
      else await this.reload();
    } catch (error) {
      await this.chat.stop();
      if (isConnectionLoss(error)) {
        this.#isStopped = true;
        this.#reconnection.restart(error);
      }
      throw error;
    } finally {
      this.#set({ isStopping: false });
    }
  };

  /**
   * Replace the messages by those that the server stores, and resume the running turn. The outputs of
   * this page that the server does not have yet stay; they are sent if nothing else is awaited.
   *
   * Nothing changes while a response is streaming, or if the server does not store the chat.
   */
  readonly reload = async (): Promise<StoredChat<Message> | undefined> => {
    const stored = await this.#load();
    if (stored && !this.#isBusy) this.#show(stored);
    return stored;
  };

  /**
   * Show what has changed on the server, as another tab or device may have caused it: as `reload`,
   * but equal messages stay as they are, and so does a message that the server does not store.
   *
   * @returns False if a response, or a resume, began meanwhile: it may be older than the change.
   */
  readonly synchronize = async (): Promise<boolean> => {
    const { error } = this.chat;
    if (isConnectionLoss(error)) {
      await this.#reconnection.repeat(error);
      return true;
    }
    const shown = this.chat.messages.at(-1)?.id;
    const stored = await this.#load();
    const { messages } = this.chat;
    if (this.#isBusy || messages.at(-1)?.id !== shown) return false;
    if (stored === undefined) return true;
    if (stored.status === "running" && this.#state.isResumePending) return false;
    const expected = withUnsentOutputs(stored.messages, messages);
    const last = messages.at(-1);
    // A message that was answered was stored, unless an edit has replaced it since.
    const isKnown = last?.role !== "user" || stored.messages.some(({ id }) => id === last.id);
    const isCurrent = stored.status !== "running" && isSameHistory(messages, expected);
    if (isKnown && isCurrent) {
      // An error is still shown beside the answer that it ended.
      this.#setMessages((current) => withStoredMetadata(current, expected));
    } else if (isKnown) {
      this.chat.clearError();
      this.#show(stored);
    }
    return true;
  };

  /**
   * After an error, send the last message or decisions again, or regenerate the last answer.
   * After a lost connection, first look for the answer on the server.
   */
  readonly retry = async (): Promise<void> => {
    const error = this.#state.reconnectionError ?? this.chat.error;
    this.#isStopped = false;
    if (isConnectionLoss(error)) this.#reconnection.restart(error);
    else await this.#sendAgain();
  };

  /** Disconnect as a reader: the turn continues, or ends as the server's settings say. */
  disconnect(): void {
    this.#toolExecutor.abort();
    this.#reconnection.stop();
    void this.voice.stop();
    this.#transport.disconnect();
    this.#disconnected = this.chat.stop();
  }

  #decide(id: string, approved: boolean, reason: string | undefined): Promise<void> {
    return this.addToolApprovalResponse({ id, approved, ...(reason && { reason }) });
  }

  get #isBusy(): boolean {
    return this.chat.status === "submitted" || this.chat.status === "streaming";
  }

  async #load(): Promise<StoredChat<Message> | undefined> {
    const { apiUrl, headers, fetch: send } = this.#transport;
    const { credentials } = this.#options;
    const fetch: typeof globalThis.fetch = (url, init) =>
      send(url, { ...init, signal: AbortSignal.timeout(LOAD_TIMEOUT) });
    return loadChat<Message>({ apiUrl, chatId: this.chat.id, headers, fetch, credentials });
  }

  /** Show a stored chat with the outputs that it lacks, and send them if nothing else is awaited. */
  #show(stored: StoredChat<Message>, rule?: SendRule): void {
    const messages = withUnsentOutputs(stored.messages, this.chat.messages);
    this.#replaceMessages({ ...stored, messages });
    const hasUnsent = stored.status === "waiting" && !isSameHistory(messages, stored.messages);
    if (hasUnsent && this.#shouldSend(messages, rule)) void this.chat.sendMessage();
    if (stored.status === "interrupted") this.#continueAnswer(stored);
  }

  /** Ask once for the rest of an answer during which the server has died. */
  #continueAnswer({ messages }: StoredChat<Message>): void {
    const answer = messages.at(-1)?.id;
    if (answer === this.#continuedAnswer) return;
    this.#continuedAnswer = answer;
    void this.chat.sendMessage();
  }

  #replaceMessages(stored: StoredChat<Message>): void {
    this.chat.messages = stored.messages;
    this.#safeRule.forget();
    this.#decidedLocally.clear();
    const open = new Set(pendingApprovals(stored.messages).map(({ approvalId }) => approvalId));
    this.#staged.clear(this.#staged.approvalIds.filter((id) => !open.has(id)));
    // A second resume would end the first, and what it has to replay.
    if (stored.status === "running" && !this.#state.isResumePending) {
      this.#set({ isResuming: true });
      void this.chat.resumeStream();
    }
    if (stored.status === "waiting") this.#executeOpenCalls();
  }

  /** The status of the chat changes only with the response to a resume. */
  #onResume(isResumePending: boolean): void {
    clearTimeout(this.#resumeTimer);
    this.#set(isResumePending ? { isResumePending } : { isResumePending, isResuming: false });
    // A request without a response would last for ever.
    if (isResumePending) this.#resumeTimer = setTimeout(() => this.#onResume(false), LOAD_TIMEOUT);
  }

  /** Continue after a lost connection: show the stored answer, resume it, or send what is lost. */
  async #recover(): Promise<void> {
    const stored = await this.#load();
    if (this.#isBusy) return;
    const last = this.chat.messages.at(-1);
    const version = storedVersion(last, stored);
    const isUnsent = last?.role === "user" && !hasSameText(version, last);
    if (isUnsent && this.#isStopped) {
      this.chat.clearError();
      this.#takeBack(last, version, new RequestRefused(NOT_SENT, CLIENT_ENDED, "stopped"));
    } else if (isUnsent) {
      // The server accepts a message once, also if the first request is still on its way.
      void this.chat.sendMessage(
        version === undefined ? undefined : ({ ...last, messageId: last.id } as never),
      );
      return;
    }
    if (stored === undefined) return;
    const answer = stored.messages.at(-1);
    const isAnswered = answer?.role === "assistant" && answer.parts.length > 0;
    // The part of the answer that was shown stays until it is sent again.
    if (stored.status === "ready" && !isAnswered && !this.#isStopped) throw new Error(INTERRUPTED);
    this.chat.clearError();
    // A rule of the options may regard outputs as sent that were lost with the connection.
    this.#show(stored, this.#safeRule);
  }

  /** Return a message that the server did not store, or only an earlier version of, as unsent. */
  #takeBack(unsent: Message, version: Message | undefined, error: RequestRefused): void {
    if (version === undefined) {
      this.#setMessages((messages) => messages.filter(({ id }) => id !== unsent.id));
    } else if (hasSameText(version, unsent)) return;
    this.#set({ refusal: { error, unsent } });
  }

  /** Send the unanswered message or decisions again, or else regenerate the last answer. */
  async #sendAgain(): Promise<void> {
    const last = this.chat.messages.at(-1);
    const isUnanswered = last?.role === "user" || last?.parts.some(isUnsettledDecision);
    await (isUnanswered ? this.chat.sendMessage() : this.chat.regenerate());
  }

  #shouldSend(
    messages: readonly Message[],
    rule = this.#options.sendAutomaticallyWhen ?? this.#safeRule,
  ): boolean {
    return rule({ messages: messages as readonly ChatMessage[] });
  }

  #onAccepted(sent: readonly ChatMessage[]): void {
    const decided = sent
      .flatMap((message) => message.parts)
      .filter((part) => part.state === "approval-responded")
      .map((part) => part.approval?.id ?? "");
    this.#staged.clear(decided);
    this.#set({ refusal: undefined, reconnectionError: undefined });
  }

  #onDataPart(part: { type: string; data?: unknown }): void {
    const closed = closedApproval(part);
    if (closed === undefined) return;
    this.#staged.clear([closed.approvalId]);
    this.#setMessages((messages) => withClosedApproval(messages, closed));
    const { messageId } = closed;
    if (messageId === undefined || this.#released.has(messageId)) return;
    this.#released.add(messageId);
    // Without a connection the message stays as it is until the chat is loaded.
    void this.#showReleased(messageId).catch(() => this.#released.delete(messageId));
  }

  /** Show the text and the results that were held back until a message was closed (D7). */
  async #showReleased(messageId: string): Promise<void> {
    const stored = await this.#load();
    const released = stored?.messages.find(({ id }) => id === messageId);
    if (released === undefined) return;
    this.#setMessages((messages) =>
      messages.map((message) => (message.id === messageId ? released : message)),
    );
  }

  #setMessages(update: (messages: Message[]) => Message[]): void {
    const { messages } = this.chat;
    const updated = update(messages);
    if (updated !== messages) this.chat.messages = updated;
  }

  #onRequestError(error: Error): void {
    if (isConnectionLoss(error)) {
      this.#isStopped = false;
      this.#reconnection.start(error);
    }
    if (!(error instanceof RequestRefused)) return;
    const last = this.chat.messages.at(-1);
    // Decisions that were refused for another reason can be sent again.
    const isOutdated = error.status === 404 || error.status === 409;
    if (last?.role !== "user" && !isOutdated) return;
    this.#set({ refusal: { error } });
    const onLoad = (stored?: StoredChat<Message>) => {
      // Without the outputs that the server has refused.
      if (stored && !this.#isBusy) this.#replaceMessages(stored);
      if (this.#state.refusal?.error !== error || last?.role !== "user") return;
      this.#takeBack(last, storedVersion(last, stored), error);
    };
    // Without the stored messages, those of the page stay, but for the refused one.
    this.#load().then(onLoad, () => onLoad());
  }

  #onResponseEnd({ isAbort, isDisconnect, isError, finishReason }: FinishEvent): void {
    // Only a complete response shows which of its calls require approval.
    const isComplete = !isAbort && !isDisconnect && !isError && finishReason === "tool-calls";
    if (isComplete) this.#executeOpenCalls();
  }

  #executeOpenCalls(): void {
    // A chat sends no output while it is being stopped.
    void this.#disconnected.then(() => {
      const { clientTools = {} } = this.#options;
      const isAccepted = (approvalId: string) => !this.#decidedLocally.has(approvalId);
      const messages = this.chat.messages as readonly ChatMessage[];
      const calls = openCalls(messages, clientTools, isAccepted);
      this.#toolExecutor.execute(calls, clientTools, ({ toolName, toolCallId }, outcome) => {
        void this.chat.addToolOutput({ tool: toolName, toolCallId, ...outcome } as never);
      });
    });
  }

  /** Wait for the end of the response; disconnect from it after `stopTimeout`. */
  async #waitForEnd(): Promise<void> {
    const { stopTimeout = STOP_TIMEOUT } = this.#options;
    await this.#whenIdle(stopTimeout);
    if (this.#isBusy) await this.chat.stop();
  }

  /** Resolves when no response is streaming, or after `timeout` milliseconds. */
  async #whenIdle(timeout?: number): Promise<void> {
    if (!this.#isBusy) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        unsubscribe();
        resolve();
      };
      const unsubscribe = this.chat["~registerStatusCallback"](() => {
        if (!this.#isBusy) end();
      });
      const timer = timeout === undefined ? undefined : setTimeout(end, timeout);
    });
  }

  #set(change: Partial<SessionState<Message>>): void {
    const isSame = Object.entries(change).every(
      ([key, value]) => this.#state[key as keyof SessionState<Message>] === value,
    );
    if (isSame) return;
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }
}
