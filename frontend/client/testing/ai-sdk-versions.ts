import * as ai6 from "../../../e2e/conformance/clients/ai-6/client.ts";
import * as ai6Floor from "../../../e2e/conformance/clients/ai-6-floor/client.ts";
import * as ai7 from "../../../e2e/conformance/clients/ai-7/client.ts";
import * as ai7Floor from "../../../e2e/conformance/clients/ai-7-floor/client.ts";
import type { ChatMessage } from "../src/message-parts.ts";

/** Any rule, including those of the AI SDK, whose types differ between the majors. */
export type Rule = (state: { messages: ChatMessage[] }) => boolean | PromiseLike<boolean>;

export const CLIENTS = { "6": ai6, "6-floor": ai6Floor, "7": ai7, "7-floor": ai7Floor } as const;
export type Version = keyof typeof CLIENTS;
export const VERSIONS = Object.keys(CLIENTS) as Version[];

/** The kinds of transport; AI SDK 6 has no `WebSocketChatTransport`. */
export type Over = "sse" | "websocket" | "bidi";

/** One version with one of its transports. */
export interface ClientVariant {
  readonly version: Version;
  readonly over: Over;
}

export const CLIENT_VARIANTS: readonly ClientVariant[] = VERSIONS.flatMap((version) =>
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
