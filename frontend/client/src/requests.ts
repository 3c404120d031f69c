/** Headers, or what gives them when a request is made. */
export type HeaderSource =
  | Record<string, string>
  | Headers
  | (() => HeaderGift | Promise<HeaderGift>);

type HeaderGift = Record<string, string> | Headers;

/** The headers as a plain object with lower-case names; a function is asked anew each time. */
export async function resolveHeaders(
  source: HeaderSource | undefined,
): Promise<Record<string, string>> {
  const given = typeof source === "function" ? await source() : source;
  return Object.fromEntries(new Headers(given));
}

/** The address of something below `api`; a query of `api` is kept. */
export function below(api: string, path: string): string {
  const end = api.search(/[?#]/);
  const address = end === -1 ? api : api.slice(0, end);
  return `${address.replace(/\/$/, "")}${path}${end === -1 ? "" : api.slice(end)}`;
}

/** The address of something beside `api`, in place of its last segment; a query is kept. */
export function beside(api: string, path: string): string {
  const end = api.search(/[?#]/);
  const address = end === -1 ? api : api.slice(0, end);
  const parent = address.replace(/\/$/, "").replace(/\/[^/]*$/, "");
  return `${parent}${path}${end === -1 ? "" : api.slice(end)}`;
}

/**
 * A chat's id as a segment of an address.
 *
 * Throws an `Error` for an id that names another place, escaped or not.
 */
export function segment(chatId: string): string {
  if (/^\.{0,2}$/.test(chatId)) throw new Error(`A chat cannot have the id "${chatId}".`);
  return encodeURIComponent(chatId);
}
