/**
 * The transport over server-sent events.
 * @module sluicegate/sse
 */

import { type ChatTransport, DefaultChatTransport, type UIMessage } from "ai";
import { installedMajor, type Major } from "./installed-major.ts";
import { type TransportInit, type TransportOptions, transportInit } from "./transport-options.ts";

/** The options of `createSseTransport`. */
export interface SseOptions extends TransportOptions {
  /** Defaults to the major version of the installed `ai`. */
  readonly major?: Major;
  readonly fetch?: typeof fetch;
  readonly credentials?: RequestCredentials | undefined;
}

/** The constructor options of the AI SDK's `DefaultChatTransport`. */
export interface SseInit extends TransportInit {
  api: string;
  fetch?: typeof fetch;
  credentials?: RequestCredentials;
}

/** A class to use in place of the installed `DefaultChatTransport`, such as a subclass of it. */
export interface SseTransportClass<Transport> {
  readonly ai: { readonly DefaultChatTransport: new (options: SseInit) => Transport };
}

/**
 * Create the AI SDK's `DefaultChatTransport`: server-sent events over `fetch`, with the major
 * version in the header `x-ai-sdk` and the release policy in `x-release`.
 */
export function createSseTransport<Transport>(
  options: SseOptions & SseTransportClass<Transport>,
): Transport;
export function createSseTransport<Message extends UIMessage>(
  options: SseOptions,
): ChatTransport<Message>;
export function createSseTransport(
  options: SseOptions & Partial<SseTransportClass<unknown>>,
): unknown {
  const { ai = { DefaultChatTransport }, api, major, fetch, credentials } = options;
  return new ai.DefaultChatTransport({
    ...transportInit(options, () => major ?? installedMajor()),
    api,
    ...(fetch && { fetch }),
    ...(credentials && { credentials }),
  });
}
