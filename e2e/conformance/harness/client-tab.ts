import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ReconnectOptions } from "../../../frontend/client/src/bidi/reconnecting-socket.ts";
import {
  type StagedDecision,
  StagedDecisions,
} from "../../../frontend/client/src/staged-decision-extras.ts";
import { type ChatLike, type ChatOptions, validatorsFor } from "./ai-sdk.ts";
import { type Combination, nameOf, sdkOf } from "./matrix.ts";
import { type Message, type Part, pendingApprovals, toolOf } from "./messages.ts";
import { closeSockets, createRecordedSocket } from "./recorded-socket.ts";
import { fetchWithoutConnectTimeout, Recorder, type Turn, trace } from "./recorder.ts";
import { createRule } from "./send-rules.ts";
import type { ServerInfo } from "./servers.ts";
import type { Chunk } from "./sse-parser.ts";
import { ChangeNotifier, expectUnchanged, waitFor } from "./waiting.ts";

/** The response of `GET /chats/{id}`. */
export interface StoredChat {
  readonly id: string;
  readonly title: string;
  readonly messages: Message[];
  readonly status: "ready" | "running" | "waiting";
}

/** A second reader of a turn; not attached if the turn had ended. */
export interface Reader {
  readonly attached: boolean;
  readonly chat: ChatLike;
  readonly recorder: Recorder;
}

export interface ClientTabOptions {
  readonly server: ServerInfo;
  readonly combination: Combination;
  /** The expected number of posts; a second reader resumes the last one. */
  readonly posts: number;
  readonly reconnect?: Partial<ReconnectOptions>;
  readonly chatId?: string;
  readonly user?: string;
  readonly messages?: readonly Message[];
  /** The turns of the chat in other tabs. */
  readonly earlier?: readonly Turn[];
  /** Whether another tab has a live connection to this chat. */
  readonly hasLiveTab?: boolean;
}

/** Whether every request has ended and the client is idle. */
function isIdle(chat: ChatLike, recorder: Recorder): boolean {
  return !recorder.isBusy && (chat.status === "ready" || chat.status === "error");
}

/** A browser tab: the real `Chat` of one user on one chat of the running server. */
export class ClientTab {
  readonly server: ServerInfo;
  readonly combination: Combination;
  readonly expectedPosts: number;
  readonly chatId: string;
  readonly user: string;
  readonly changes = new ChangeNotifier();
  readonly recorder: Recorder;
  readonly chat: ChatLike;
  readonly earlier: readonly Turn[];
  /** Whether the model of the chat is live; it cannot be paused until a second reader resumes. */
  readonly isLive: boolean;
  /** Edits and grants, as the client package sends them. */
  readonly staged = new StagedDecisions();
  /** The tools that each request declares. */
  tools: Readonly<Record<string, object>> | undefined;
  /** The transient and persistent data parts that `onData` received. */
  readonly data: { type: string; data: unknown }[] = [];
  /** The second reader of the last post. */
  reader: Promise<Reader> | undefined;
  /** Called with each chunk of the posts of this tab. */
  onPostChunk: (post: number, chunk: Chunk) => void = () => {};

  constructor(options: ClientTabOptions) {
    this.server = options.server;
    this.combination = options.combination;
    this.expectedPosts = options.posts;
    this.chatId = options.chatId ?? randomUUID();
    this.user = options.user ?? `user-${this.chatId}`;
    this.earlier = options.earlier ?? [];
    this.isLive = options.hasLiveTab === true || this.combination.transport === "live";
    const sdk = sdkOf(this.combination);
    this.recorder = new Recorder({
      validators: validatorsFor(this.combination.version),
      changes: this.changes,
      maxPosts: options.posts + 4,
      onPost: () => this.#onPost(),
      onChunk: (turn, chunk) => this.#onChunk(turn, chunk),
    });
    this.chat = sdk.createChat({
      id: this.chatId,
      ...this.#transportOptions(this.recorder),
      sendAutomaticallyWhen: createRule(this.combination.rule, sdk),
      onData: (part) => this.data.push(part),
      ...(options.messages && { messages: options.messages }),
      ...(options.reconnect && { reconnect: options.reconnect }),
    });
    this.changes.subscribe(() => {
      // A refused post starts no turn, so no reader will resume it.
      if (!this.recorder.isBusy) this.resumeModel();
    });
    this.chat["~registerMessagesCallback"](this.changes.notify);
    this.chat["~registerStatusCallback"](this.changes.notify);
  }

  get headers(): Record<string, string> {
    return {
      "x-user": this.user,
      "x-ai-sdk": String(sdkOf(this.combination).major),
      "x-release": this.combination.release,
    };
  }

  get pending(): Part[] {
    return pendingApprovals(this.chat.messages);
  }

  get isIdle(): boolean {
    return isIdle(this.chat, this.recorder);
  }

  /** Send a user message without waiting for the response. */
  send(text: string): void {
    void this.chat.sendMessage({ text });
  }

  /** Wait until the client is idle; each named tool must have a pending approval. */
  waitForApprovals(...tools: string[]): Promise<void> {
    return this.#whenIdle(
      () => tools.every((tool) => this.#pendingFor(tool) !== undefined),
      `an approval request for ${tools.join(" and ")}`,
    );
  }

  /** Wait until the client is idle; it must have sent this number of posts. */
  waitForPosts(posts: number): Promise<void> {
    return this.#whenIdle(() => this.recorder.posts.length === posts, `${posts} posts`);
  }

  /** Decide on the next approval of a tool when the client is idle; does not wait for the response. */
  async decide(tool: string, approved: boolean, reason?: string): Promise<void> {
    await this.waitForApprovals(tool);
    const id = this.#pendingFor(tool)?.approval?.id ?? "";
    await this.chat.addToolApprovalResponse({ id, approved, ...(reason && { reason }) });
  }

  async approve(...tools: string[]): Promise<void> {
    for (const tool of tools) await this.decide(tool, true);
  }

  /** Approve with edited arguments, or for the rest of the chat. */
  async approveWith(tool: string, decision: StagedDecision): Promise<void> {
    await this.waitForApprovals(tool);
    this.staged.stage(this.#pendingFor(tool)?.approval?.id ?? "", decision);
    await this.decide(tool, true);
  }

  async deny(tool: string, reason?: string): Promise<void> {
    await this.decide(tool, false, reason);
  }

  /** Add the output of an open client-side call when the client is idle. */
  async addOutput(tool: string, output: unknown): Promise<void> {
    const find = (): Part | undefined =>
      this.chat.messages
        .flatMap((message) => message.parts)
        .find((part) => part.type === `tool-${tool}` && part.state === "input-available");
    await this.#whenIdle(() => find() !== undefined, `an open call of ${tool}`);
    const toolCallId = find()?.toolCallId ?? "";
    await this.chat.addToolOutput({ tool, toolCallId, output });
  }

  /** Load the stored chat. */
  async loadChat(): Promise<StoredChat> {
    const response = await fetchWithoutConnectTimeout(
      `${this.server.url}/api/chats/${this.chatId}`,
      { headers: this.headers },
    );
    if (!response.ok) throw new Error(`GET /chats: ${response.status} ${await response.text()}`);
    return (await response.json()) as StoredChat;
  }

  /** Load what an earlier version of a message had, to what then was the end of the chat. */
  async loadVersion(messageId: string, version: number): Promise<Message[]> {
    const path = `/api/chats/${this.chatId}/messages/${messageId}/versions/${version}`;
    const response = await fetchWithoutConnectTimeout(`${this.server.url}${path}`, {
      headers: this.headers,
    });
    if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
    return ((await response.json()) as StoredChat).messages;
  }

  /** Stop the turn on the server. */
  async stopTurn(): Promise<void> {
    const response = await fetchWithoutConnectTimeout(
      `${this.server.url}/api/chat/${this.chatId}/stop`,
      { method: "POST", headers: this.headers },
    );
    if (response.status !== 204) throw new Error(`stop: ${response.status}`);
  }

  /** Resume the running turn, as a page that was loaded with these messages. */
  async resume(messages: readonly Message[], onAttached: () => void = () => {}): Promise<Reader> {
    const sdk = sdkOf(this.combination);
    const recorder = new Recorder({
      validators: validatorsFor(this.combination.version),
      changes: new ChangeNotifier(),
      maxPosts: 0,
      onResponse: onAttached,
    });
    const chat = sdk.createChat({
      id: this.chatId,
      // A chat has at most one live socket; other readers use SSE.
      ...this.#transportOptions(recorder, this.combination.transport !== "live"),
      messages: sdk.replacesOnResume ? messages : messages.filter(({ role }) => role === "user"),
    });
    await chat.resumeStream();
    return { attached: recorder.turns[0]?.status === 200, chat, recorder };
  }

  /** Pause the model, or only after a result of the named tool. */
  pauseModel(tool?: string): void {
    writeFileSync(this.#pauseFile(tool), "");
  }

  resumeModel(tool?: string): void {
    rmSync(this.#pauseFile(tool), { force: true });
  }

  /** Close the sockets of every tab on the chat. */
  close(): void {
    closeSockets(this.chatId);
  }

  waitFor(condition: () => boolean, name: string): Promise<void> {
    return waitFor(condition, name, { changes: this.changes, describe: () => this.describe() });
  }

  /** Check that an idle client neither posts nor changes. */
  async expectIdle(milliseconds: number): Promise<void> {
    await expectUnchanged(milliseconds, () =>
      JSON.stringify([this.recorder.posts.length, this.chat.status, this.chat.messages]),
    );
  }

  describe(): string {
    const { chat } = this;
    return [
      `${nameOf(this.combination)}, chat ${this.chatId}, status ${chat.status}`,
      `error: ${chat.error?.message ?? "none"}`,
      trace(this.recorder.turns),
      ...chat.messages.map((message) => JSON.stringify(message)),
    ].join("\n");
  }

  /** An idle client sends nothing by itself, so the condition must hold at that time. */
  #whenIdle(condition: () => boolean, name: string): Promise<void> {
    return this.waitFor(() => {
      if (!this.isIdle) return false;
      if (condition()) return true;
      throw new Error(`the client is idle without ${name}\n${this.describe()}`);
    }, `an idle client and ${name}`);
  }

  /** The connection of a client to the server, observed by a recorder. */
  #transportOptions(recorder: Recorder, useSocket = true): Omit<ChatOptions, "id"> {
    const { chatId, headers } = this;
    const transport = useSocket ? this.combination.transport : undefined;
    return {
      api: `${this.server.url}/api/chat`,
      headers,
      body: () => ({ ...this.staged.body(), ...(this.tools && { tools: this.tools }) }),
      fetch: recorder.fetch,
      ...(transport && { transport, webSocket: createRecordedSocket(recorder, chatId, headers) }),
    };
  }

  #pauseFile(tool?: string): string {
    return join(this.server.holds, tool === undefined ? this.chatId : `${this.chatId}.${tool}`);
  }

  #pendingFor(tool: string): Part | undefined {
    return this.pending.find((part) => toolOf(part) === tool);
  }

  /** The turn of the last post is paused until the second reader has resumed it. */
  #onPost(): void {
    if (this.recorder.posts.length === this.expectedPosts) this.pauseModel();
  }

  #onChunk(turn: Turn, chunk: Chunk): void {
    if (turn.kind !== "send") return;
    const post = this.recorder.posts.length;
    if (chunk.type === "start" && post === this.expectedPosts) {
      const resumeModel = (): void => this.resumeModel();
      this.reader = this.loadChat().then(({ messages }) => this.resume(messages, resumeModel));
      // The rejection is handled where the reader is checked.
      this.reader.catch(resumeModel);
    }
    this.onPostChunk(post, chunk);
  }
}
