import type { UIMessage } from "ai";
import { type Grant, loadGrants, RequestRefused, revokeGrant } from "sluicegate";

/** A chat in the list. */
export interface ChatSummary {
  readonly id: string;
  /** Null if the first message has no text. */
  readonly title: string | null;
  readonly updatedAt: string;
  readonly pendingApprovals: number;
  readonly status: "ready" | "running" | "waiting";
}

/** A page of the chat list; `next` is the cursor of the following page. */
export interface ChatPage {
  readonly chats: readonly ChatSummary[];
  readonly next: string | null;
}

/** A file that the server stores. */
export interface StoredFile {
  readonly url: string;
  readonly mediaType: string;
  readonly name: string;
  /** Why no model of the agent reads the file. */
  readonly notice?: string;
}

function resolveApiUrl(): string {
  const configured = document.querySelector<HTMLMetaElement>("meta[name=sluicegate-api]")?.content;
  return new URL(configured ?? "api", document.baseURI).pathname.replace(/\/$/, "");
}

/** The URL prefix of the server's routes: an absolute path on this host. */
export const API_URL = resolveApiUrl();

/** Send a request to the API; rejects with `RequestRefused` if the server refuses it. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(`${API_URL}${path}`, init);
  if (response.ok) return response;
  throw await refusalOf(response);
}

/** The refusal that a response without a success status says. */
export async function refusalOf(response: Response): Promise<RequestRefused> {
  const message = (await response.text()).trim() || "The server refused the request.";
  const code = response.headers.get("x-error-code") ?? undefined;
  return new RequestRefused(message, response.status, code);
}

const chatPath = (id: string) => `/chats/${encodeURIComponent(id)}`;

export async function listChats(query: string, after?: string): Promise<ChatPage> {
  const params = new URLSearchParams({
    ...(query !== "" && { q: query }),
    ...(after !== undefined && { after }),
  });
  return (await request(`/chats?${params}`)).json();
}

/** The number of approvals that wait for the user, over all chats; at most 100 are counted. */
export async function countApprovals(): Promise<number> {
  const response = await request("/approvals?limit=100");
  return ((await response.json()) as { approvals: unknown[] }).approvals.length;
}

export async function renameChat(id: string, title: string): Promise<void> {
  await request(chatPath(id), {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title }),
  });
}

export async function deleteChat(id: string): Promise<void> {
  await request(chatPath(id), { method: "DELETE" });
}

/** The messages of an earlier version, from its user message to the former end of the chat. */
export async function loadVersion(
  chat: string,
  messageId: string,
  version: number,
): Promise<readonly UIMessage[]> {
  const message = `${chatPath(chat)}/messages/${encodeURIComponent(messageId)}`;
  const response = await request(`${message}/versions/${version}`);
  return ((await response.json()) as { messages: UIMessage[] }).messages;
}

export async function listGrants(chat: string): Promise<readonly Grant[]> {
  return loadGrants({ apiUrl: API_URL, chatId: chat });
}

export async function withdrawGrant(chat: string, grantId: string): Promise<void> {
  await revokeGrant({ apiUrl: API_URL, chatId: chat, grantId });
}

/** Store a file with a chat; undefined if the server does not store files. */
export async function uploadFile(chat: string, file: File): Promise<StoredFile | undefined> {
  const name = encodeURIComponent(file.name);
  try {
    const response = await request(`${chatPath(chat)}/files?filename=${name}`, {
      method: "POST",
      headers: { "content-type": file.type || "application/octet-stream" },
      body: file,
    });
    return await response.json();
  } catch (error) {
    const isUnsupported = error instanceof RequestRefused && [404, 405].includes(error.status);
    if (isUnsupported) return undefined;
    throw error;
  }
}

/** Exchange a token for a session cookie. */
export async function signIn(token: string): Promise<void> {
  await request("/session", { method: "POST", headers: { authorization: `Bearer ${token}` } });
}
