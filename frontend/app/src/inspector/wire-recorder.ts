import type { UIMessageChunk } from "ai";
import { onSocket } from "./open-sockets.ts";
import { type PostBody, WireLog, WireRecorder } from "./wire-log.ts";

/** A running recording of the page's requests, chunks and frames. */
export interface Recording {
  readonly log: WireLog;
  /** The browser's `fetch`, recorded. */
  readonly fetch: typeof fetch;
  readonly stop: () => void;
}

const CHAT = /\/chats\/([^/]+)\//;

/** Call a listener with the data of each server-sent event of a response. */
async function readEvents(response: Response, onData: (data: string) => void): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) if (event.startsWith("data: ")) onData(event.slice(6));
  }
}

function recordChunks(response: Response, recorder: WireRecorder): void {
  // The response itself reports a failed connection.
  readEvents(response.clone(), (data) => {
    if (data.startsWith("{")) recorder.chunk(JSON.parse(data) as UIMessageChunk);
  }).catch(() => {});
}

function recordedFetch(recorder: WireRecorder): typeof fetch {
  return async (url, init) => {
    const { pathname } = new URL(String(url), location.href);
    const release = new Headers(init?.headers).get("x-release") ?? "";
    const chat = decodeURIComponent(CHAT.exec(pathname)?.[1] ?? "");
    const isPost = init?.method === "POST";
    const isSend = isPost && pathname.endsWith("/chat");
    if (isSend) recorder.send(JSON.parse(String(init.body)), release);
    if (isPost && pathname.endsWith("/stop")) recorder.stop(chat, release);
    const response = await fetch(url, init);
    const isResume = pathname.endsWith("/stream") && response.status === 200;
    if (isResume) recorder.resume(chat, release);
    if (response.ok && (isSend || isResume)) recordChunks(response, recorder);
    return response;
  };
}

function parseFrame(data: string): Record<string, unknown> {
  try {
    return JSON.parse(data) as Record<string, unknown>;
  } catch {
    return { text: data };
  }
}

function recordFrame(recorder: WireRecorder, dir: "client" | "server", data: unknown): void {
  if (typeof data !== "string") return;
  const frame = parseFrame(data);
  const release = new Headers(frame.headers as HeadersInit | undefined).get("x-release") ?? "";
  switch (frame.type) {
    case "heartbeat":
      return;
    case "send":
      recorder.send({ ...frame, ...(frame.body as object) } as unknown as PostBody, release);
      return;
    case "chunk":
      recorder.chunk(frame.chunk as UIMessageChunk);
      return;
    default:
      recorder.frame(dir, frame);
  }
}

/** Record the frames of a socket; returns a function that ends this. */
function recordSocket(socket: WebSocket, recorder: WireRecorder): () => void {
  const onMessage = ({ data }: MessageEvent) => recordFrame(recorder, "server", data);
  socket.addEventListener("message", onMessage);
  socket.send = (data) => {
    recordFrame(recorder, "client", data);
    WebSocket.prototype.send.call(socket, data);
  };
  return () => {
    socket.removeEventListener("message", onMessage);
    Reflect.deleteProperty(socket, "send");
  };
}

/** Start to record the page's requests, chunks and frames. */
export function startRecording(): Recording {
  const log = new WireLog();
  const recorder = new WireRecorder(log);
  const ends: (() => void)[] = [];
  ends.push(onSocket((socket) => ends.push(recordSocket(socket, recorder))));
  return {
    log,
    fetch: recordedFetch(recorder),
    stop: () => {
      for (const end of ends) end();
    },
  };
}
