import { BidiChatTransport, type BidiChatTransportOptions } from "../src/bidi/bidi-transport.ts";
import type { Major } from "../src/installed-major.ts";
import type { ScriptedSockets } from "../src/testing/scripted-sockets.ts";
import { CLIENTS, type Version } from "./ai-sdk-versions.ts";
import type { ChatLike } from "./scripted-chat.ts";

export function majorOf(version: Version): Major {
  return version.startsWith("6") ? 6 : 7;
}

/** The AI SDK's `Chat` with a `BidiChatTransport` over fake sockets. */
export function createBidiChat(
  sockets: ScriptedSockets,
  version: Version,
  options: Partial<BidiChatTransportOptions> & { readonly [key: string]: unknown } = {},
): { chat: ChatLike; transport: BidiChatTransport } {
  const { headers, body, loadChat, reconnect, ...chatOptions } = options;
  const transport = new BidiChatTransport({
    url: "wss://page/api/chat/ws",
    major: majorOf(version),
    webSocket: sockets.webSocket,
    ...(headers && { headers }),
    ...(body && { body }),
    ...(loadChat && { loadChat }),
    reconnect: { initialDelay: 0, ...reconnect },
  });
  const Chat = CLIENTS[version].Chat as unknown as new (options: object) => ChatLike;
  return { chat: new Chat({ id: "chat", transport, ...chatOptions }), transport };
}

/** The text of all assistant messages. */
export function assistantText({
  messages,
}: {
  messages: readonly { role: string; parts: readonly object[] }[];
}): string {
  return messages
    .filter(({ role }) => role === "assistant")
    .flatMap(({ parts }) => parts.map((part) => (part as { text?: string }).text ?? ""))
    .join("");
}
