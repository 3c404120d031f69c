/** The server has refused a request; `message` is the server's sentence. */
export class RequestRefused extends Error {
  override readonly name = "RequestRefused";
  /** The HTTP status. */
  readonly status: number;
  /** The error code, from the header `x-error-code`. */
  readonly code: string | undefined;

  constructor(message: string, status: number, code: string | undefined) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The refusal of a response without a success status; `fallback` is used for an empty body. */
export async function refusalFromResponse(
  response: Response,
  fallback: string,
): Promise<RequestRefused> {
  const message = (await response.text()).trim() || fallback;
  const code = response.headers.get("x-error-code") ?? undefined;
  return new RequestRefused(message, response.status, code);
}

/** A `fetch` that rejects with `RequestRefused` for a response without a success status. */
export function rejectRefusals(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (...request) => {
    const response = await fetch(...request);
    if (response.ok) return response;
    throw await refusalFromResponse(response, "The server refused the request.");
  };
}
