import type * as ai7 from "../../../e2e/conformance/clients/ai-7/client.ts";
import { createBidiTransport } from "../src/bidi/create-bidi-transport.ts";
import type { ChatMessage, MessagePart } from "../src/message-parts.ts";
import { createSseTransport } from "../src/sse.ts";
import type { ResponseChunks } from "../src/testing/chunks.ts";
import { ScriptedSockets } from "../src/testing/scripted-sockets.ts";
import { createWebSocketTransport } from "../src/websocket.ts";
import { CLIENTS, type Over, type Rule, type Version } from "./ai-sdk-versions.ts";
import { whenIdle } from "./when-idle.ts";

/** The members of the AI SDK's `Chat` that the tests use; its types differ between the majors. */
export interface ChatLike {
  messages: ChatMessage[];
  readonly status: string;
  sendMessage(message?: { text: string }): Promise<void>;
  addToolApprovalResponse(response: { id: string; approved: boolean }): PromiseLike<void> | void;
  addToolOutput(output: { tool: string; toolCallId: string; output: unknown }): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
}

/** The number of posts after which a client counts as looping; further posts are refused. */
export const MAX_POSTS = 12;

export interface Script {
  readonly version: Version;
  /** Default: `sse`. */
  readonly over?: Over;
  readonly rule: Rule;
  /** One per post, in order; the last one is repeated for further posts. */
  readonly responses: readonly ResponseChunks[];
  /** The response to `resumeStream`; without one, no turn is running. */
  readonly resumed?: ResponseChunks;
  /** The messages that the page has loaded. */
  readonly messages?: readonly ChatMessage[];
  /** Outputs of client-side tools, added as soon as they are called. */
  readonly clientToolOutputs?: Readonly<Record<string, unknown>>;
}

const REFUSED = "the client loops";

/** A transport of the AI SDK or of this package, connected to a scripted server. */
function createTransport(
  { version, over = "sse", resumed }: Script,
  nextResponse: () => ResponseChunks | undefined,
): unknown {
  const ai = CLIENTS[version] as unknown as typeof ai7;
  const common = { api: "https://page/api/chat", major: version.startsWith("6") ? 6 : 7 } as const;
  if (over === "sse") {
    const createResponse = (chunks: ResponseChunks): Response => {
      const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
      return new Response(`${data}data: [DONE]\n\n`);
    };
    const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
      const chunks = init?.method === "POST" ? nextResponse() : resumed;
      if (chunks !== undefined) return createResponse(chunks);
      const status = init?.method === "POST" ? 429 : 204;
      return new Response(status === 204 ? null : REFUSED, { status });
    };
    return createSseTransport({ ...common, ai, fetch });
  }
  const sockets = new ScriptedSockets();
  sockets.onFrame = (socket, { type, requestId }) => {
    if (type === "abort") return;
    const chunks = type === "send" ? nextResponse() : resumed;
    if (chunks === undefined) {
      const refusal = { type: "error", requestId, errorText: REFUSED };
      socket.emitFrame(type === "send" ? refusal : { type: "no-active", requestId });
      return;
    }
    if (type === "resume") socket.emitFrame({ type: "start", requestId });
    socket.emitChunks(requestId, chunks);
    socket.emitFrame({ type: "end", requestId });
  };
  const { webSocket } = sockets;
  return over === "bidi"
    ? createBidiTransport({ ...common, webSocket })
    : createWebSocketTransport({ ...common, ai, webSocket });
}

/** The AI SDK's `Chat` with a real transport, connected to a scripted server. */
export class ScriptedChat {
  readonly chat: ChatLike;
  readonly #script: Script;
  #posts = 0;

  constructor(script: Script) {
    this.#script = script;
    const Chat = CLIENTS[script.version].Chat as unknown as new (options: object) => ChatLike;
    this.chat = new Chat({
      id: "chat",
      transport: createTransport(script, () => this.#post()),
      sendAutomaticallyWhen: script.rule,
      onToolCall: ({ toolCall }: { toolCall: { toolName: string; toolCallId: string } }) => {
        const { toolName: tool, toolCallId } = toolCall;
        const output = script.clientToolOutputs?.[tool];
        // Not awaited: the chat waits for this callback.
        if (output !== undefined) void this.chat.addToolOutput({ tool, toolCallId, output });
      },
      ...(script.messages && { messages: structuredClone([...script.messages]) }),
    });
  }

  /** The number of posts, including those of user messages. */
  get posts(): number {
    return this.#posts;
  }

  get parts(): readonly MessagePart[] {
    return this.chat.messages.flatMap((message) => message.parts);
  }

  /** The states of the tool calls, in order. */
  get states(): (string | undefined)[] {
    return this.parts.filter((part) => part.toolCallId !== undefined).map((part) => part.state);
  }

  async send(text: string): Promise<void> {
    await this.chat.sendMessage({ text });
    await whenIdle(this.chat);
  }

  /** Post the messages unchanged. */
  async resend(): Promise<void> {
    await this.chat.sendMessage();
    await whenIdle(this.chat);
  }

  async decide(id: string, approved = true): Promise<void> {
    await this.chat.addToolApprovalResponse({ id, approved });
    await whenIdle(this.chat);
  }

  async addOutput(toolCallId: string, output: unknown, tool = "locate"): Promise<void> {
    await this.chat.addToolOutput({ tool, toolCallId, output });
    await whenIdle(this.chat);
  }

  async resume(): Promise<void> {
    await this.chat.resumeStream();
    await whenIdle(this.chat);
  }

  /** Decide on the pending approvals in order, until there is none or the limit is reached. */
  async decideAll(approved = true): Promise<void> {
    for (let left = MAX_POSTS; left > 0; left -= 1) {
      const pending = this.parts.find((part) => part.state === "approval-requested");
      if (pending?.approval === undefined) return;
      await this.decide(pending.approval.id, approved);
    }
  }

  /** The response to the next post; undefined beyond the limit. */
  #post(): ResponseChunks | undefined {
    const { responses } = this.#script;
    const response = responses[Math.min(this.#posts, responses.length - 1)];
    this.#posts += 1;
    return this.#posts > MAX_POSTS ? undefined : (response ?? []);
  }
}
