import type { SocketClass } from "./socket-class.ts";

/**
 * Milliseconds without a byte after which a connection counts as lost. The server sends a heartbeat
 * after 15 seconds of silence.
 */
export const IDLE_TIMEOUT = 20_000;

/** The result of a promise; rejects with a network error after `IDLE_TIMEOUT`. */
async function beforeIdle<Result>(result: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const error = new TypeError("The network connection is silent.");
    timer = setTimeout(() => reject(error), IDLE_TIMEOUT);
  });
  try {
    return await Promise.race([result, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function failIfIdle(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await beforeIdle(reader.read());
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        void reader.cancel(error).catch(() => {});
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** A `fetch` whose event streams fail with a network error when the connection is silent. */
export function failIdleStreams(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (...request) => {
    const response = await fetch(...request);
    const isEventStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    if (!isEventStream || response.body === null) return response;
    const { status, statusText, headers } = response;
    return new Response(failIfIdle(response.body), { status, statusText, headers });
  };
}

/** A WebSocket class whose sockets emit an error and close when the connection is silent. */
export function failIdleSockets(webSocket: SocketClass): SocketClass {
  return new Proxy(webSocket, {
    construct(Socket, [url, protocols]) {
      const socket = new Socket(url, protocols) as WebSocket;
      let timer: ReturnType<typeof setTimeout>;
      const restart = () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          // The closing handshake would wait for the silent server.
          socket.dispatchEvent(new Event("error"));
          socket.close(4000, "silence");
        }, IDLE_TIMEOUT);
      };
      socket.addEventListener("open", restart);
      socket.addEventListener("message", restart);
      socket.addEventListener("close", () => clearTimeout(timer));
      restart();
      return socket;
    },
  });
}
