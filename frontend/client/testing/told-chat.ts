import { BidiChatTransport, type BidiOptions } from "../src/bidi/bidi-transport.ts";
import type { Major } from "../src/chat-transport.ts";
import type { FakeSockets } from "./fake-sockets.ts";
import { CLIENTS, type ScriptedChat, type Version } from "./scripted-chat.ts";

type ChatLike = ScriptedChat["chat"];

export function majorOf(version: Version): Major {
  return version.startsWith("6") ? 6 : 7;
}

/** The AI SDK's `Chat` over a `BidiChatTransport` and sockets that a test holds the other end of. */
export function chatOver(
  sockets: FakeSockets,
  version: Version,
  options: Partial<BidiOptions> & { readonly [key: string]: unknown } = {},
): { chat: ChatLike; transport: BidiChatTransport } {
  const { headers, body, stored, patience, ...forChat } = options;
  const transport = new BidiChatTransport({
    url: "wss://page/api/chat/ws",
    major: majorOf(version),
    webSocket: sockets.webSocket,
    ...(headers && { headers }),
    ...(body && { body }),
    ...(stored && { stored }),
    patience: { firstWait: 0, ...patience },
  });
  const Chat = CLIENTS[version].Chat as unknown as new (given: object) => ChatLike;
  return { chat: new Chat({ id: "chat", transport, ...forChat }), transport };
}

/** Wait until the chat is idle and stays so for as long as answers from memory can take. */
export async function rest(chat: ChatLike): Promise<void> {
  let quiet = 0;
  for (let turns = 0; turns < 10_000; turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    quiet = chat.status === "ready" || chat.status === "error" ? quiet + 1 : 0;
    if (quiet === 3) return;
  }
  throw new Error(`the chat never came to rest, its status is ${chat.status}`);
}

/** What the assistant says. */
export function texts({
  messages,
}: {
  messages: readonly { role: string; parts: readonly object[] }[];
}): string {
  return messages
    .filter(({ role }) => role === "assistant")
    .flatMap(({ parts }) => parts.map((part) => (part as { text?: string }).text ?? ""))
    .join("");
}
