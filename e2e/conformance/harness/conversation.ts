import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type StagedDecision, StagedDecisions } from "../../../frontend/client/src/approvals.ts";
import type { ReconnectOptions } from "../../../frontend/client/src/bidi/reconnecting-socket.ts";
import type { ChatLike, ChatOptions } from "./kit.ts";
import { judges } from "./kit.ts";
import { type Combination, kitOf, nameOf, predicate } from "./matrix.ts";
import { type Message, type Part, pendingApprovals, toolOf } from "./messages.ts";
import { Recorder, type Turn, trace } from "./recorder.ts";
import type { Place } from "./servers.ts";
import { closeSockets, recordedSocket } from "./socket.ts";
import type { Chunk } from "./sse.ts";
import { Bell, staysQuiet, waitFor } from "./waiting.ts";

/** `GET /chats/{id}`. */
export interface History {
  readonly id: string;
  readonly title: string;
  readonly messages: Message[];
  readonly status: "ready" | "running" | "waiting";
}

/** What a second reader has seen of a running turn; not attached when none ran any more. */
export interface Resumed {
  readonly attached: boolean;
  readonly chat: ChatLike;
  readonly recorder: Recorder;
}

export interface ConversationOptions {
  readonly place: Place;
  readonly combination: Combination;
  /** The posts this chat will make; a second reader joins the last of them. */
  readonly posts: number;
  readonly reconnect?: Partial<ReconnectOptions>;
  readonly chatId?: string;
  readonly user?: string;
  readonly messages?: readonly Message[];
  /** Turns of the chat that other tabs have had before. */
  readonly earlier?: readonly Turn[];
  /** Whether another tab talks live on this chat [that tab alone]. */
  readonly isBesideLive?: boolean;
}

/** Whether every request has ended and the client is at rest. */
function isAtRest(chat: ChatLike, recorder: Recorder): boolean {
  return !recorder.isBusy && (chat.status === "ready" || chat.status === "error");
}

/** One tab: one user's real `Chat` on one chat of the running server. */
export class Conversation {
  readonly place: Place;
  readonly combination: Combination;
  readonly expectedPosts: number;
  readonly chatId: string;
  readonly user: string;
  readonly bell = new Bell();
  readonly recorder: Recorder;
  readonly chat: ChatLike;
  readonly earlier: readonly Turn[];
  /** Whether the chat's model is live: nothing holds it back until a second reader has come. */
  readonly isLive: boolean;
  /** What goes with an answer, as the client package sends it. */
  readonly staged = new StagedDecisions();
  /** Tools that the page brings along with each request. */
  tools: Readonly<Record<string, object>> | undefined;
  /** Transient and lasting data parts, as `onData` got them. */
  readonly data: { type: string; data: unknown }[] = [];
  /** The second reader of the last post. */
  resumed: Promise<Resumed> | undefined;
  /** Called with each chunk of this tab's own posts. */
  watch: (post: number, chunk: Chunk) => void = () => {};

  constructor(options: ConversationOptions) {
    this.place = options.place;
    this.combination = options.combination;
    this.expectedPosts = options.posts;
    this.chatId = options.chatId ?? randomUUID();
    this.user = options.user ?? `user-${this.chatId}`;
    this.earlier = options.earlier ?? [];
    this.isLive = options.isBesideLive === true || this.combination.transport === "live";
    const kit = kitOf(this.combination);
    this.recorder = new Recorder({
      judges: judges(this.combination.version),
      bell: this.bell,
      mostPosts: options.posts + 4,
      onPost: () => this.#onPost(),
      onChunk: (turn, chunk) => this.#onChunk(turn, chunk),
    });
    this.chat = kit.chat({
      id: this.chatId,
      ...this.#wayPast(this.recorder),
      sendAutomaticallyWhen: predicate(this.combination.rule, kit),
      onData: (part) => this.data.push(part),
      ...(options.messages && { messages: options.messages }),
      ...(options.reconnect && { reconnect: options.reconnect }),
    });
    this.bell.listen(() => {
      // A post that is refused never starts a turn that somebody could join.
      if (!this.recorder.isBusy) this.letGo();
    });
    this.chat["~registerMessagesCallback"](this.bell.ring);
    this.chat["~registerStatusCallback"](this.bell.ring);
  }

  get headers(): Record<string, string> {
    return {
      "x-user": this.user,
      "x-ai-sdk": String(kitOf(this.combination).major),
      "x-release": this.combination.release,
    };
  }

  get pending(): Part[] {
    return pendingApprovals(this.chat.messages);
  }

  get isAtRest(): boolean {
    return isAtRest(this.chat, this.recorder);
  }

  /** Send a user message and do not wait for its answer. */
  say(text: string): void {
    void this.chat.sendMessage({ text });
  }

  /** Wait until the client is at rest; then one part per named tool asks. */
  asks(...tools: string[]): Promise<void> {
    return this.#rest(
      () => tools.every((tool) => this.#pendingFor(tool) !== undefined),
      `a request for ${tools.join(" and ")}`,
    );
  }

  /** Wait until the client is at rest; then it has posted as often as this. */
  rests(posts: number): Promise<void> {
    return this.#rest(() => this.recorder.posts.length === posts, `${posts} posts`);
  }

  /** Answer the next request of a tool, once the client is at rest; resolves without the response. */
  async answer(tool: string, approved: boolean, reason?: string): Promise<void> {
    await this.asks(tool);
    const id = this.#pendingFor(tool)?.approval?.id ?? "";
    await this.chat.addToolApprovalResponse({ id, approved, ...(reason && { reason }) });
  }

  async approve(...tools: string[]): Promise<void> {
    for (const tool of tools) await this.answer(tool, true);
  }

  /** Say yes with changed arguments, or for the rest of the chat. */
  async approveWith(tool: string, staged: StagedDecision): Promise<void> {
    await this.asks(tool);
    this.staged.stage(this.#pendingFor(tool)?.approval?.id ?? "", staged);
    await this.answer(tool, true);
  }

  async deny(tool: string, reason?: string): Promise<void> {
    await this.answer(tool, false, reason);
  }

  /** Give the output of a client-side call, once the client is at rest and the call is open. */
  async output(tool: string, output: unknown): Promise<void> {
    const find = (): Part | undefined =>
      this.chat.messages
        .flatMap((message) => message.parts)
        .find((part) => part.type === `tool-${tool}` && part.state === "input-available");
    await this.#rest(() => find() !== undefined, `an open call of ${tool}`);
    const toolCallId = find()?.toolCallId ?? "";
    await this.chat.addToolOutput({ tool, toolCallId, output });
  }

  async history(): Promise<History> {
    const response = await fetch(`${this.place.url}/api/chats/${this.chatId}`, {
      headers: this.headers,
    });
    if (!response.ok) throw new Error(`history: ${response.status} ${await response.text()}`);
    return (await response.json()) as History;
  }

  /** The server's stop, which is not the client's. */
  async stopTurn(): Promise<void> {
    const response = await fetch(`${this.place.url}/api/chat/${this.chatId}/stop`, {
      method: "POST",
      headers: this.headers,
    });
    if (response.status !== 204) throw new Error(`stop: ${response.status}`);
  }

  /** Read on where a turn runs, as a page does that has been loaded with these messages. */
  async resume(messages: readonly Message[], joined: () => void = () => {}): Promise<Resumed> {
    const kit = kitOf(this.combination);
    const recorder = new Recorder({
      judges: judges(this.combination.version),
      bell: new Bell(),
      mostPosts: 0,
      onAnswer: joined,
    });
    const chat = kit.chat({
      id: this.chatId,
      // A chat is live on one socket alone; who only reads comes another way.
      ...this.#wayPast(recorder, this.combination.transport !== "live"),
      messages: kit.resumesLoaded ? messages : messages.filter(({ role }) => role === "user"),
    });
    await chat.resumeStream();
    return { attached: recorder.turns[0]?.status === 200, chat, recorder };
  }

  /** Keep the model from speaking, or only after a result of the named tool. */
  hold(tool?: string): void {
    writeFileSync(this.#holdFile(tool), "");
  }

  letGo(tool?: string): void {
    rmSync(this.#holdFile(tool), { force: true });
  }

  /** Close the sockets of every tab on the chat. */
  close(): void {
    closeSockets(this.chatId);
  }

  waitFor(condition: () => boolean, what: string): Promise<void> {
    return waitFor(condition, what, { bell: this.bell, describe: () => this.describe() });
  }

  /** See that an idle client neither posts nor changes. */
  async staysQuiet(milliseconds: number): Promise<void> {
    await staysQuiet(milliseconds, () =>
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

  /** A client at rest sends nothing by itself, so what is not there by then does not come. */
  #rest(condition: () => boolean, what: string): Promise<void> {
    return this.waitFor(() => {
      if (!this.isAtRest) return false;
      if (condition()) return true;
      throw new Error(`the client rests without ${what}\n${this.describe()}`);
    }, `rest and ${what}`);
  }

  /** The way of a client to the server, on which a recorder sees everything. */
  #wayPast(recorder: Recorder, maySocket = true): Omit<ChatOptions, "id"> {
    const { chatId, headers } = this;
    const transport = maySocket ? this.combination.transport : undefined;
    return {
      api: `${this.place.url}/api/chat`,
      headers,
      body: () => ({ ...this.staged.body(), ...(this.tools && { tools: this.tools }) }),
      fetch: recorder.fetch,
      ...(transport && { transport, webSocket: recordedSocket(recorder, chatId, headers) }),
    };
  }

  #holdFile(tool?: string): string {
    return join(this.place.holds, tool === undefined ? this.chatId : `${this.chatId}.${tool}`);
  }

  #pendingFor(tool: string): Part | undefined {
    return this.pending.find((part) => toolOf(part) === tool);
  }

  /** The last post's turn is held back until the second reader has joined it. */
  #onPost(): void {
    if (this.recorder.posts.length === this.expectedPosts) this.hold();
  }

  #onChunk(turn: Turn, chunk: Chunk): void {
    if (turn.kind !== "send") return;
    const post = this.recorder.posts.length;
    if (chunk.type === "start" && post === this.expectedPosts) {
      const letGo = (): void => this.letGo();
      this.resumed = this.history().then(({ messages }) => this.resume(messages, letGo));
      // Whoever looks at it gets the fault; until then it is not an unhandled one.
      this.resumed.catch(letGo);
    }
    this.watch(post, chunk);
  }
}
