import { RequestRefused } from "sluicegate";

/** One chat of the list. */
export interface ChatSummary {
  readonly id: string;
  readonly title: string;
  readonly updatedAt: string;
  readonly pendingApprovals: number;
}

/** A page of the list; `next` is where the one after it begins. */
export interface ChatPage {
  readonly chats: readonly ChatSummary[];
  readonly next: string | null;
}

/** A file that the server keeps. */
export interface StoredFile {
  readonly url: string;
  readonly mediaType: string;
  readonly name: string;
}

function prefix(): string {
  const named = document.querySelector<HTMLMetaElement>("meta[name=sluicegate-api]")?.content;
  return new URL(named ?? "api", document.baseURI).pathname.replace(/\/$/, "");
}

/** What the addresses of the server begin with; an absolute path on this host. */
export const API = prefix();

/** Ask the server. Throws a `RequestRefused` with its sentence where it refuses. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(`${API}${path}`, init);
  if (response.ok) return response;
  const sentence = (await response.text()).trim() || "The server refused the request.";
  const code = response.headers.get("x-error-code") ?? undefined;
  throw new RequestRefused(sentence, response.status, code);
}

const chatPath = (id: string) => `/chats/${encodeURIComponent(id)}`;

export async function listChats(query: string, after?: string): Promise<ChatPage> {
  const asked = new URLSearchParams({
    ...(query !== "" && { q: query }),
    ...(after !== undefined && { after }),
  });
  return (await ask(`/chats?${asked}`)).json();
}

export async function renameChat(id: string, title: string): Promise<void> {
  await ask(chatPath(id), {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title }),
  });
}

export async function deleteChat(id: string): Promise<void> {
  await ask(chatPath(id), { method: "DELETE" });
}

/** A tool that the person allows in a chat without being asked. */
export interface Grant {
  readonly tool: string;
}

export async function listGrants(chat: string): Promise<readonly Grant[]> {
  const { grants } = await (await ask(`${chatPath(chat)}/grants`)).json();
  return grants;
}

export async function withdrawGrant(chat: string, tool: string): Promise<void> {
  await ask(`${chatPath(chat)}/grants/${encodeURIComponent(tool)}`, { method: "DELETE" });
}

/** Keep a file with a chat; undefined where the server keeps no files. */
export async function uploadFile(chat: string, file: File): Promise<StoredFile | undefined> {
  const name = encodeURIComponent(file.name);
  try {
    const response = await ask(`${chatPath(chat)}/files?filename=${name}`, {
      method: "POST",
      headers: { "content-type": file.type || "application/octet-stream" },
      body: file,
    });
    return await response.json();
  } catch (error) {
    const isMissing = error instanceof RequestRefused && [404, 405].includes(error.status);
    if (isMissing) return undefined;
    throw error;
  }
}

/** First messages that the server proposes. */
export async function loadSuggestions(): Promise<readonly string[]> {
  const response = await fetch("suggestions.json");
  return response.ok ? response.json() : [];
}

/** Trade a token for a cookie that this browser sends with everything. */
export async function signIn(token: string): Promise<void> {
  await ask("/session", { method: "POST", headers: { authorization: `Bearer ${token}` } });
}

const BROWSER_SENTENCES: Readonly<Record<string, string>> = {
  NotAllowedError: "The browser does not let this page at the microphone; allow it and try again.",
  NotFoundError: "There is no microphone; connect one and try again.",
  NotReadableError: "Another program has the microphone; close it and try again.",
};

/** A sentence for a person. */
export function sentenceOf(error: unknown): string {
  if (error instanceof RequestRefused) return error.message;
  if (error instanceof DOMException && error.name in BROWSER_SENTENCES) {
    return BROWSER_SENTENCES[error.name] ?? "";
  }
  if (error instanceof TypeError) return "The server cannot be reached. Try again in a moment.";
  return error instanceof Error ? error.message : "Something went wrong. Try again.";
}
