import { describe, expect, test } from "vitest";
import * as ai6 from "../../../e2e/conformance/clients/ai-6/client.ts";
import * as ai7 from "../../../e2e/conformance/clients/ai-7/client.ts";
import { CLIENTS, VERSIONS } from "../testing/ai-sdk-versions.ts";
import { createBidiTransport } from "./bidi/index.ts";
import type { Major } from "./installed-major.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";
import { s2Sse } from "./sequential-send-rules.ts";
import { createSseTransport } from "./sse.ts";
import { createWebSocketTransport } from "./websocket.ts";

interface Post {
  readonly url: string;
  readonly method: string | undefined;
  readonly headers: Record<string, string>;
  readonly body: Record<string, unknown>;
}

/** A `fetch` that responds with an empty stream and records its requests. */
function recordingFetch(): { posts: Post[]; fetch: typeof fetch } {
  const posts: Post[] = [];
  return {
    posts,
    fetch: async (url, init) => {
      posts.push({
        url: String(url),
        method: init?.method,
        headers: Object.fromEntries(new Headers(init?.headers)),
        body: JSON.parse(typeof init?.body === "string" ? init.body : "{}"),
      });
      return new Response("data: [DONE]\n\n");
    },
  };
}

type Sockets = { url: string; protocols: unknown; frames: Record<string, unknown>[] }[];
type SocketClass = new (url: string | URL, protocols?: string | string[]) => object;

/** A WebSocket class that opens immediately, ends each request and records its frames. */
function recordingSockets(): { sockets: Sockets; webSocket: SocketClass } {
  const sockets: Sockets = [];
  class ScriptedSocket extends EventTarget {
    readonly readyState = 1;
    readonly bufferedAmount = 0;
    onopen?: () => void;
    onmessage?: (event: { data: string }) => void;
    readonly #frames: Record<string, unknown>[] = [];

    constructor(url: string | URL, protocols?: string | string[]) {
      super();
      sockets.push({ url: String(url), protocols, frames: this.#frames });
      queueMicrotask(() => {
        this.onopen?.();
        this.dispatchEvent(new Event("open"));
      });
    }

    send(data: string): void {
      const frame = JSON.parse(data);
      this.#frames.push(frame);
      const end = { data: JSON.stringify({ type: "end", requestId: frame.requestId }) };
      queueMicrotask(() => {
        this.onmessage?.(end);
        this.dispatchEvent(new MessageEvent("message", end));
      });
    }

    close(): void {}
  }
  return { sockets, webSocket: ScriptedSocket };
}

function majorOf(version: string): Major {
  return version.startsWith("6") ? 6 : 7;
}

/** The transports of a version, with the types of AI SDK 7. */
function transports(version: (typeof VERSIONS)[number]): typeof ai7 {
  return CLIENTS[version] as unknown as typeof ai7;
}

const SEND = { chatId: "c1", messageId: undefined, messages: [], abortSignal: undefined };
const SUBMIT = { ...SEND, trigger: "submit-message" } as const;

describe.each(VERSIONS)("the SSE transport for ai %s", (version) => {
  const major = majorOf(version);
  const ai = transports(version);
  const api = "https://example.org/api/chat";

  test("is the AI SDK's own transport", () => {
    const transport = createSseTransport({ ai, api, major });
    expect(transport).toBeInstanceOf(ai.DefaultChatTransport);
  });

  test("sends the major and the release with every request", async () => {
    const { posts, fetch } = recordingFetch();
    const release = "progressive";
    const transport = createSseTransport({ ai, api, major, release, fetch });
    await transport.sendMessages(SUBMIT);
    await transport.reconnectToStream({ chatId: "c1" });

    expect(posts.map(({ url, method }) => [method, url])).toEqual([
      ["POST", api],
      ["GET", `${api}/c1/stream`],
    ]);
    for (const { headers } of posts) {
      expect(headers).toMatchObject({ "x-ai-sdk": String(major), "x-release": release });
    }
  });

  test("sends no release by default", async () => {
    const { posts, fetch } = recordingFetch();
    const transport = createSseTransport({ ai, api, major, fetch });
    await transport.sendMessages(SUBMIT);

    expect(posts[0]?.headers).toMatchObject({ "x-ai-sdk": String(major) });
    expect(posts[0]?.headers).not.toHaveProperty("x-release");
  });

  test("resolves headers and body for each request, and keeps the major", async () => {
    const { posts, fetch } = recordingFetch();
    let count = 0;
    const headers = async () => {
      count += 1;
      return { Authorization: `Bearer ${count}`, "X-AI-SDK": "5" };
    };
    const body = () => ({ remember: count });
    const transport = createSseTransport({ ai, api, major, headers, body, fetch });
    await transport.sendMessages(SUBMIT);
    await transport.sendMessages(SUBMIT);

    expect(posts.map((post) => post.headers.authorization)).toEqual(["Bearer 1", "Bearer 2"]);
    expect(posts.map((post) => post.headers["x-ai-sdk"])).toEqual([`${major}`, `${major}`]);
    expect(posts.every((post) => "remember" in post.body)).toBe(true);
  });
});

describe.each(["7", "7-floor"] as const)("the WebSocket transport for ai %s", (version) => {
  const ai = transports(version);

  test("sends the major and the release in every frame", async () => {
    const { sockets, webSocket } = recordingSockets();
    const transport = createWebSocketTransport({
      ai,
      api: "https://example.org/api/chat",
      release: "preview",
      headers: new Headers({ "X-Tab": "1" }),
      body: { remember: {} },
      params: { token: "t" },
      protocols: "sluicegate",
      webSocket,
    });
    expect(transport).toBeInstanceOf(ai.WebSocketChatTransport);
    await transport.sendMessages(SUBMIT);
    await transport.reconnectToStream({ chatId: "c1" });

    const headers = { "x-ai-sdk": "7", "x-release": "preview", "x-tab": "1" };
    const frame = { id: "c1", headers, body: { remember: {} } };
    expect(sockets).toHaveLength(1);
    expect(sockets[0]).toMatchObject({
      url: "wss://example.org/api/chat/ws?token=t",
      protocols: "sluicegate",
      frames: [
        { ...frame, type: "send" },
        { ...frame, type: "resume" },
      ],
    });
  });
});

test.each(["6", "6-floor"] as const)(
  "ai %s has no WebSocket transport, which is an error",
  (version) => {
    const options = { ai: transports(version), api: "/api/chat" };
    const sentence =
      'The WebSocket transport needs AI SDK 7.0.138 or newer; use kind: "sse" or "bidi".';
    expect(() => createWebSocketTransport(options)).toThrow(sentence);
  },
);

describe.each(["6", "6-floor", "7", "7-floor"] as const)(
  "the BIDI transport for ai %s",
  (version) => {
    const major = majorOf(version);

    test.each([
      { api: "https://example.org/api/chat?key=1", url: "wss://example.org/api/chat/ws?key=1" },
      { api: "http://127.0.0.1:8000/chat/", url: "ws://127.0.0.1:8000/chat/ws" },
    ])("connects below $api and sends the major and the release", async ({ api, url }) => {
      const { sockets, webSocket } = recordingSockets();
      const transport = createBidiTransport({
        api,
        major,
        release: "deferred",
        headers: { "X-Tab": "1" },
        body: { remember: {} },
        webSocket,
      });
      await transport.sendMessages(SUBMIT);
      await transport.reconnectToStream({ chatId: "c1" });

      const headers = { "x-ai-sdk": String(major), "x-release": "deferred", "x-tab": "1" };
      const frame = { id: "c1", headers, body: { remember: {} } };
      expect(sockets).toMatchObject([
        {
          url,
          protocols: undefined,
          frames: [
            { ...frame, type: "send" },
            { ...frame, type: "resume" },
          ],
        },
      ]);
    });

    test("connects to the live route for a live chat", async () => {
      const { sockets, webSocket } = recordingSockets();
      const transport = createBidiTransport({
        api: "https://example.org/api/chat?key=1",
        major,
        live: { chatId: "a&b" },
        params: { token: "t" },
        webSocket,
      });
      await transport.sendMessages(SUBMIT);

      expect(sockets[0]).toMatchObject({
        url: "wss://example.org/api/live?key=1&token=t&chat=a%26b",
        protocols: ["sluicegate.live.v1"],
      });
    });
  },
);

test("the transports are assignable to the Chat of both majors", () => {
  const api = "/api/chat";
  const rule = sendAutomaticallyWhen();
  const { DefaultChatTransport } = ai6;
  const six = new ai6.Chat({
    transport: createSseTransport({ ai: { DefaultChatTransport }, api, major: 6 }),
    sendAutomaticallyWhen: rule,
  });
  interface Own extends ai7.UIMessage<{ model: string }, { progress: { done: boolean } }> {}
  const seven = new ai7.Chat<Own>({
    transport: createSseTransport({ ai: ai7, api, major: 7 }),
    sendAutomaticallyWhen: s2Sse,
  });
  const socket = new ai7.Chat<Own>({
    transport: createWebSocketTransport({ ai: ai7, api }),
    sendAutomaticallyWhen: rule,
  });
  const kept = new ai6.Chat({
    transport: createBidiTransport({ api, major: 6 }),
    sendAutomaticallyWhen: rule,
  });

  const chats = [six, seven, socket, kept];
  expect(chats.map(({ status }) => status)).toEqual(["ready", "ready", "ready", "ready"]);
});
