import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { Voice } from "../audio/voice.ts";
import { ClientToolRuns, openCalls } from "../client-tools.ts";
import { closedApproval, withClosedApproval, withDecidedApproval } from "../closed-cards.ts";
import type { ChatMessage } from "../messages.ts";
import { pendingApprovals } from "../pending-approvals.ts";
import { stopChat } from "../real-stop.ts";
import { RequestRefused } from "../refusals.ts";
import { type SafeSendRule, sendAutomaticallyWhen } from "../send-automatically.ts";
import { type Staged, StagedDecisions } from "../staged-decisions.ts";
import { loadChat, type StoredChat } from "../stored-chat.ts";
import { Connection } from "./connection.ts";
import type { SluiceChatOptions } from "./options.ts";
import { SpokenTurns } from "./spoken.ts";

/** A request that the server refused, after which the chat was loaded anew. */
export interface Refusal<Message> {
  readonly error: RequestRefused;
  /** The message of the user that was not taken; the chat does not hold it any more. */
  readonly unsent?: Message;
}

/** What a session knows beside its chat. */
export interface SessionState<Message> {
  readonly isStopping: boolean;
  /** The last request's, undefined once another request was taken. */
  readonly refusal: Refusal<Message> | undefined;
}

/** What goes with a yes. */
export interface ApproveOptions extends Staged {
  readonly reason?: string;
}

type Answer = Parameters<Chat<UIMessage>["addToolApprovalResponse"]>[0];
type OnFinish = NonNullable<SluiceChatOptions["onFinish"]>;
type Finished = Parameters<OnFinish>[0];

const STOP_TIMEOUT = 10_000;

/** One chat of one page: the AI SDK's `Chat` and what it does not know of the server. */
export class ChatSession<Message extends UIMessage> {
  readonly chat: Chat<Message>;
  /** The conversation by voice, over a live connection. */
  readonly voice: Voice;
  readonly #connection: Connection<Message>;
  readonly #staged = new StagedDecisions();
  readonly #runs = new ClientToolRuns();
  readonly #safeRule: SafeSendRule;
  /** Approvals answered in this page, which the server may not know yet. */
  readonly #answeredHere = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #options: SluiceChatOptions<Message>;
  /** What was begun before the chat was left has come to its end. */
  #left: Promise<void> = Promise.resolve();
  #state: SessionState<Message> = { isStopping: false, refusal: undefined };

  constructor(options: SluiceChatOptions<Message>) {
    this.#options = options;
    const { clientTools, id, messages, generateId } = options;
    const { dataPartSchemas, messageMetadataSchema } = options;
    this.#safeRule = sendAutomaticallyWhen(
      clientTools === undefined ? {} : { clientTools: Object.keys(clientTools) },
    );
    this.#connection = new Connection(options, () => this.chat.id, {
      decided: (approval) => this.#change((shown) => withDecidedApproval(shown, approval)),
      body: this.#staged.body,
      taken: (sent) => this.#taken(sent as readonly ChatMessage[]),
      idle: () => this.#runOpenCalls(),
    });
    const spoken = new SpokenTurns<Message>({
      change: (change) => this.#change(change),
      rest: () => this.#rest(),
      resume: (messageId) => this.chat.resumeStream({ body: { messageId } }),
    });
    this.voice = new Voice({
      transport: () => this.#connection.live(),
      worklets: () => this.#options.worklets,
      constraints: () => this.#options.microphone,
      onTurn: (turn) => void spoken.answer(turn),
      onTranscript: (transcript) => {
        spoken.hear(transcript);
        this.#options.onTranscript?.(transcript);
      },
    });
    this.chat = new Chat<Message>({
      transport: this.#connection,
      sendAutomaticallyWhen: ({ messages }) => this.#sends(messages),
      onData: (part) => {
        this.#patch(part);
        this.#options.onData?.(part);
      },
      onError: (error) => {
        this.#failed(error);
        this.#options.onError?.(error);
      },
      onFinish: (finished) => {
        this.#finished(finished as Finished);
        this.#options.onFinish?.(finished);
      },
      onToolCall: (call) => this.#options.onToolCall?.(call),
      ...(id !== undefined && { id }),
      ...(messages !== undefined && { messages: [...messages] }),
      ...(generateId !== undefined && { generateId }),
      ...(dataPartSchemas !== undefined && { dataPartSchemas }),
      ...(messageMetadataSchema !== undefined && { messageMetadataSchema }),
    });
  }

  /** Take the options of the last rendering; those of the chat itself stay as they were. */
  update(options: SluiceChatOptions<Message>): void {
    this.#options = options;
    this.#connection.options = options;
    const canSpeak = options.kind === "bidi" && options.live === true;
    if (!canSpeak) void this.voice.stop();
    if (!this.#isBusy) this.#connection.settle();
  }

  readonly state = (): SessionState<Message> => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Answer an approval and stage what goes with it. */
  readonly approve = async (
    approvalId: string,
    { reason, ...staged }: ApproveOptions = {},
  ): Promise<void> => {
    this.#staged.stage(approvalId, staged);
    await this.answer({ id: approvalId, approved: true, ...(reason && { reason }) });
  };

  readonly deny = async (approvalId: string, reason?: string): Promise<void> => {
    this.#staged.clear([approvalId]);
    await this.answer({ id: approvalId, approved: false, ...(reason && { reason }) });
  };

  /** The chat's own way to answer. */
  readonly answer = async (answer: Answer): Promise<void> => {
    this.#answeredHere.add(answer.id);
    await this.chat.addToolApprovalResponse(answer);
  };

  /**
   * Stop the turn on the server and wait for the stream to end, which brings what was held; where
   * nothing comes in, the chat is loaded anew, since a stop closes the cards that wait.
   *
   * Throws what `stopChat` throws; the stream is left then all the same.
   */
  readonly stop = async (): Promise<void> => {
    this.#runs.abort();
    this.#set({ isStopping: true });
    const { chatUrl: api, headers, fetch } = this.#connection;
    const { credentials } = this.#options;
    const given = { api, chatId: this.chat.id, headers, fetch };
    try {
      await stopChat({ ...given, ...(credentials && { credentials }) });
      if (this.#isBusy) await this.#end();
      else await this.reload();
    } catch (error) {
      await this.chat.stop();
      throw error;
    } finally {
      this.#set({ isStopping: false });
    }
  };

  /**
   * Show the chat as the server holds it, and join the turn that runs.
   *
   * Nothing changes while a response comes in, or if the server holds no such chat.
   */
  readonly reload = async (): Promise<StoredChat<Message> | undefined> => {
    const { apiUrl, headers, fetch } = this.#connection;
    const { credentials } = this.#options;
    const chatId = this.chat.id;
    const stored = await loadChat<Message>({ apiUrl, chatId, headers, fetch, credentials });
    if (stored === undefined || this.#isBusy) return stored;
    this.chat.messages = stored.messages;
    this.#safeRule.forget();
    this.#answeredHere.clear();
    const open = new Set(pendingApprovals(stored.messages).map(({ approvalId }) => approvalId));
    this.#staged.clear(this.#staged.ids.filter((id) => !open.has(id)));
    if (stored.status === "running") void this.chat.resumeStream();
    if (stored.status === "waiting") this.#runOpenCalls();
    return stored;
  };

  /** Leave as a reader: the turn goes on, or ends as the server's settings say. */
  leave(): void {
    this.#runs.abort();
    void this.voice.stop();
    this.#connection.leave();
    this.#left = this.chat.stop();
  }

  get #isBusy(): boolean {
    return this.chat.status === "submitted" || this.chat.status === "streaming";
  }

  #sends(messages: readonly Message[]): boolean {
    const rule = this.#options.sendAutomaticallyWhen ?? this.#safeRule;
    return rule({ messages: messages as readonly ChatMessage[] });
  }

  #taken(sent: readonly ChatMessage[]): void {
    const answered = sent
      .flatMap((message) => message.parts)
      .filter((part) => part.state === "approval-responded")
      .map((part) => part.approval?.id ?? "");
    this.#staged.clear(answered);
    this.#set({ refusal: undefined });
  }

  #patch(part: { type: string; data?: unknown }): void {
    const news = closedApproval(part);
    if (news === undefined) return;
    this.#staged.clear([news.approvalId]);
    this.#change((shown) => withClosedApproval(shown, news));
  }

  #change(change: (messages: Message[]) => Message[]): void {
    const { messages } = this.chat;
    const changed = change(messages);
    if (changed !== messages) this.chat.messages = changed;
  }

  #failed(error: Error): void {
    if (!(error instanceof RequestRefused) || (error.status !== 404 && error.status !== 409))
      return;
    const last = this.chat.messages.at(-1);
    this.#set({ refusal: { error } });
    this.reload().then(
      (stored) => {
        const isStored = stored?.messages.some(({ id }) => id === last?.id) ?? true;
        const isOurs = this.#state.refusal?.error === error && last?.role === "user";
        if (isOurs && !isStored) this.#set({ refusal: { error, unsent: last } });
      },
      // What cannot be loaded either leaves the chat as it is, with the error it has.
      () => {},
    );
  }

  #finished({ isAbort, isDisconnect, isError, finishReason }: Finished): void {
    // Only a whole response shows which of its calls ask first.
    const isWhole = !isAbort && !isDisconnect && !isError && finishReason === "tool-calls";
    if (isWhole) this.#runOpenCalls();
  }

  #runOpenCalls(): void {
    // A chat that is being stopped sends no output.
    void this.#left.then(() => {
      const { clientTools = {} } = this.#options;
      const isDecided = (approvalId: string) => !this.#answeredHere.has(approvalId);
      const messages = this.chat.messages as readonly ChatMessage[];
      const calls = openCalls(messages, clientTools, isDecided);
      this.#runs.run(calls, clientTools, ({ toolName, toolCallId }, outcome) => {
        void this.chat.addToolOutput({ tool: toolName, toolCallId, ...outcome } as never);
      });
    });
  }

  /** Wait until the response has ended, or leave it when that takes too long. */
  async #end(): Promise<void> {
    const { stopTimeout = STOP_TIMEOUT } = this.#options;
    await this.#rest(stopTimeout);
    if (this.#isBusy) await this.chat.stop();
  }

  /** Wait until no response comes in, at most for so many milliseconds. */
  async #rest(most?: number): Promise<void> {
    if (!this.#isBusy) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        silence();
        resolve();
      };
      const silence = this.chat["~registerStatusCallback"](() => {
        if (!this.#isBusy) end();
      });
      const timer = most === undefined ? undefined : setTimeout(end, most);
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
