import * as ai6 from "../../../e2e/conformance/clients/ai-6/client.ts";
import * as ai6Floor from "../../../e2e/conformance/clients/ai-6-floor/client.ts";
import * as ai7 from "../../../e2e/conformance/clients/ai-7/client.ts";
import * as ai7Floor from "../../../e2e/conformance/clients/ai-7-floor/client.ts";
import { createChatTransport } from "../src/chat-transport.ts";
import type { ChatMessage, MessagePart } from "../src/messages.ts";
import type { Response } from "./chunks.ts";
import { FakeSockets } from "./fake-sockets.ts";

/** Any rule, the AI SDK's own included; their types differ between the majors. */
export type Rule = (state: { messages: ChatMessage[] }) => boolean | PromiseLike<boolean>;

/** What the tests use of the AI SDK's `Chat`; its real types differ between the majors. */
interface ChatLike {
  messages: ChatMessage[];
  readonly status: string;
  sendMessage(message?: { text: string }): Promise<void>;
  addToolApprovalResponse(answer: { id: string; approved: boolean }): PromiseLike<void> | void;
  addToolOutput(output: { tool: string; toolCallId: string; output: unknown }): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
}

export const CLIENTS = { "6": ai6, "6-floor": ai6Floor, "7": ai7, "7-floor": ai7Floor } as const;
export type Version = keyof typeof CLIENTS;
export const VERSIONS = Object.keys(CLIENTS) as Version[];

/** The transports there are; AI SDK 6 brings none for sockets. */
export type Over = "sse" | "websocket" | "bidi";

/** One version over one of its transports. */
export interface Way {
  readonly version: Version;
  readonly over: Over;
}

export const WAYS: readonly Way[] = VERSIONS.flatMap((version) =>
  (["sse", "websocket", "bidi"] as const)
    .filter((over) => over !== "websocket" || version.startsWith("7"))
    .map((over) => ({ version, over })),
);

type Client = Record<string, (...given: never[]) => unknown>;

/** The AI SDK's own rules, in the code of one version. */
export function stockRules(version: Version): { stock: Rule; toolCalls: Rule } {
  const client = CLIENTS[version] as unknown as Client;
  return {
    stock: client.lastAssistantMessageIsCompleteWithApprovalResponses as unknown as Rule,
    toolCalls: client.lastAssistantMessageIsCompleteWithToolCalls as unknown as Rule,
  };
}

/** Posts after which a client is said to loop; the next one is refused, which stops it. */
export const MOST_POSTS = 12;

export interface Script {
  readonly version: Version;
  /** `sse` unless given. */
  readonly over?: Over;
  readonly rule: Rule;
  /** One per post, in order; further posts get the last one again. */
  readonly responses: readonly Response[];
  /** What `resumeStream` gets; nothing runs unless given. */
  readonly resumed?: Response;
  /** The history that the page has loaded. */
  readonly messages?: readonly ChatMessage[];
  /** Outputs of page tools, given as soon as they are called. */
  readonly pageTools?: Readonly<Record<string, unknown>>;
}

const REFUSED = "the client posts again and again";

/** The AI SDK's own transports, or the package's, and a server that plays a script. */
function transportOf(
  { version, over = "sse", resumed }: Script,
  next: () => Response | undefined,
): unknown {
  const ai = CLIENTS[version] as unknown as typeof ai7;
  const common = { api: "https://page/api/chat", major: version.startsWith("6") ? 6 : 7 } as const;
  if (over === "sse") {
    const answer = (chunks: Response): globalThis.Response => {
      const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
      return new globalThis.Response(`${data}data: [DONE]\n\n`);
    };
    const fetch = async (_: unknown, init?: RequestInit): Promise<globalThis.Response> => {
      const chunks = init?.method === "POST" ? next() : resumed;
      if (chunks !== undefined) return answer(chunks);
      const status = init?.method === "POST" ? 429 : 204;
      return new globalThis.Response(status === 204 ? null : REFUSED, { status });
    };
    return createChatTransport({ ...common, kind: "sse", ai, fetch });
  }
  const sockets = new FakeSockets();
  sockets.heard = (socket, { type, requestId }) => {
    if (type === "abort") return;
    const chunks = type === "send" ? next() : resumed;
    if (chunks === undefined) {
      const refused = { type: "error", requestId, errorText: REFUSED };
      socket.say(type === "send" ? refused : { type: "no-active", requestId });
      return;
    }
    if (type === "resume") socket.say({ type: "start", requestId });
    socket.chunks(requestId, chunks);
    socket.say({ type: "end", requestId });
  };
  const { webSocket } = sockets;
  return over === "bidi"
    ? createChatTransport({ ...common, kind: "bidi", webSocket })
    : createChatTransport({ ...common, kind: "websocket", ai, webSocket });
}

/** The AI SDK's `Chat` over a real transport, to a server that plays a script. */
export class ScriptedChat {
  readonly chat: ChatLike;
  readonly #script: Script;
  #posts = 0;

  constructor(script: Script) {
    this.#script = script;
    const Chat = CLIENTS[script.version].Chat as unknown as new (options: object) => ChatLike;
    this.chat = new Chat({
      id: "chat",
      transport: transportOf(script, () => this.#post()),
      sendAutomaticallyWhen: script.rule,
      onToolCall: ({ toolCall }: { toolCall: { toolName: string; toolCallId: string } }) => {
        const { toolName: tool, toolCallId } = toolCall;
        const output = script.pageTools?.[tool];
        // Not awaited: the chat would wait for itself.
        if (output !== undefined) void this.chat.addToolOutput({ tool, toolCallId, output });
      },
      ...(script.messages && { messages: structuredClone([...script.messages]) }),
    });
  }

  /** Posts so far, those of the user included. */
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

  async say(text: string): Promise<void> {
    await this.chat.sendMessage({ text });
    await this.rest();
  }

  /** Post the messages as they are. */
  async goOn(): Promise<void> {
    await this.chat.sendMessage();
    await this.rest();
  }

  async answer(id: string, approved = true): Promise<void> {
    await this.chat.addToolApprovalResponse({ id, approved });
    await this.rest();
  }

  async give(toolCallId: string, output: unknown, tool = "locate"): Promise<void> {
    await this.chat.addToolOutput({ tool, toolCallId, output });
    await this.rest();
  }

  async resume(): Promise<void> {
    await this.chat.resumeStream();
    await this.rest();
  }

  /** Answer what is asked, the first first, until nothing is asked or nothing comes of it. */
  async answerAll(approved = true): Promise<void> {
    for (let left = MOST_POSTS; left > 0; left -= 1) {
      const asking = this.parts.find((part) => part.state === "approval-requested");
      if (asking?.approval === undefined) return;
      await this.answer(asking.approval.id, approved);
    }
  }

  /** Wait until the chat is idle and stays so for as long as a response from memory can take. */
  async rest(): Promise<void> {
    let quiet = 0;
    for (let turns = 0; turns < 10_000; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.chat.status === "ready" || this.chat.status === "error" ? quiet + 1 : 0;
      if (quiet === 3) return;
    }
    throw new Error(`the chat never came to rest, its status is ${this.chat.status}`);
  }

  /** The response to the next post; none to one too many. */
  #post(): Response | undefined {
    const { responses } = this.#script;
    const response = responses[Math.min(this.#posts, responses.length - 1)];
    this.#posts += 1;
    return this.#posts > MOST_POSTS ? undefined : (response ?? []);
  }
}
