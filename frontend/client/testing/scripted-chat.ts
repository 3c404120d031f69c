import * as ai6 from "../../../e2e/conformance/clients/ai-6/client.ts";
import * as ai6Floor from "../../../e2e/conformance/clients/ai-6-floor/client.ts";
import * as ai7 from "../../../e2e/conformance/clients/ai-7/client.ts";
import * as ai7Floor from "../../../e2e/conformance/clients/ai-7-floor/client.ts";
import type { ChatMessage, MessagePart } from "../src/messages.ts";

export interface Chunk {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** The chunks of one response to a post. */
export type Response = readonly Chunk[];

/** Any rule, the AI SDK's own included; their types differ between the majors. */
export type Rule = (state: { messages: ChatMessage[] }) => boolean | PromiseLike<boolean>;

/** What the tests use of the AI SDK's `Chat`; its real types differ between the majors. */
interface ChatLike {
  messages: ChatMessage[];
  readonly status: string;
  sendMessage(message: { text: string }): Promise<void>;
  addToolApprovalResponse(answer: { id: string; approved: boolean }): PromiseLike<void> | void;
  addToolOutput(output: { tool: string; toolCallId: string; output: unknown }): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
}

export const CLIENTS = { "6": ai6, "6-floor": ai6Floor, "7": ai7, "7-floor": ai7Floor } as const;
export type Version = keyof typeof CLIENTS;
export const VERSIONS = Object.keys(CLIENTS) as Version[];

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

function stream(chunks: Response): ReadableStream<Chunk> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue({ ...chunk });
      controller.close();
    },
  });
}

/** The AI SDK's `Chat` over a transport that plays a script from memory. */
export class ScriptedChat {
  readonly chat: ChatLike;
  readonly #script: Script;
  #posts = 0;

  constructor(script: Script) {
    this.#script = script;
    const Chat = CLIENTS[script.version].Chat as unknown as new (options: object) => ChatLike;
    this.chat = new Chat({
      id: "chat",
      transport: {
        resumeStreamIsReplay: true,
        sendMessages: async () => this.#post(),
        reconnectToStream: async () => script.resumed && stream(script.resumed),
      },
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

  #post(): ReadableStream<Chunk> {
    const { responses } = this.#script;
    const response = responses[Math.min(this.#posts, responses.length - 1)];
    this.#posts += 1;
    if (this.#posts > MOST_POSTS) throw new Error("the client posts again and again");
    return stream(response ?? []);
  }
}
