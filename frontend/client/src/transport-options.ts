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
  readonly release?: Release;
  /** Additional headers of each request; on a socket, of each frame. */
  readonly headers?: HeaderSource;
  /** Additional properties of the body; a function is called for each request. */
  readonly body?: object | (() => object | Promise<object>);
}

/** The options that the constructors of all transports share. */
export interface TransportInit {
  headers: () => Promise<Record<string, string>>;
  body?: object | (() => object | Promise<object>);
}

/**
 * The shared options of a constructor; the headers contain the major version in `x-ai-sdk` and the
 * release policy in `x-release`.
 */
export function transportInit(
  { release, headers, body }: TransportOptions,
  major: () => Major | Promise<Major>,
): TransportInit {
  return {
    headers: async () => ({
      ...(await resolveHeaders(headers)),
      "x-ai-sdk": String(await major()),
      ...(release && { "x-release": release }),
    }),
    ...(body && { body }),
  };
}
