import { type HeaderSource, resolveHeaders } from "./chat-api.ts";
import type { Major } from "./installed-major.ts";

/**
 * The release policy for text and results while approvals are pending (S2-R30): `deferred` until the
 * last decision, `preview` the same with text streamed until the first tool call (AI SDK 7), or
 * `progressive` as they are produced.
 */
export type Release = "deferred" | "preview" | "progressive";

/** The options of every transport. */
export interface TransportOptions {
  /** The URL of the chat route, such as `/api/chat`, for every transport. */
  readonly api: string;
  /** Defaults to the server's setting. */
  readonly release?: Release | undefined;
  /** Additional headers of each request; on a socket, of each frame. */
  readonly headers?: HeaderSource | undefined;
  /** Additional properties of the body; a function is called for each request. */
  readonly body?: object | (() => object | Promise<object>);
}

/** The options that the constructors of all transports share. */
export interface TransportInit {
  headers: () => Promise<Record<string, string>>;
  body?: object | (() => object | Promise<object>);
}

/** The headers of a request: those of the options, `x-ai-sdk` and `x-release`. */
export async function requestHeaders(
  { release, headers }: Pick<TransportOptions, "headers" | "release">,
  major: () => Major | Promise<Major>,
): Promise<Record<string, string>> {
  return {
    ...(await resolveHeaders(headers)),
    "x-ai-sdk": String(await major()),
    ...(release && { "x-release": release }),
  };
}

/** The shared options of a constructor. */
export function transportInit(
  options: TransportOptions,
  major: () => Major | Promise<Major>,
): TransportInit {
  const { body } = options;
  return { headers: () => requestHeaders(options, major), ...(body && { body }) };
}
